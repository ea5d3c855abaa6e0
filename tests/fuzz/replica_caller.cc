#include "tests/fuzz/replica_caller.h"

#include "tests/fuzz/reached.h"
#include "tests/fuzz/rpc_messages.h"

namespace dtf::fuzz {

namespace {

template <class Request>
kj::Promise<void> sent(Request&& request, const char* reaches) {
  return request.send().ignoreResult().then([reaches] { ++reached()[reaches]; });
}

}  // namespace

kj::Promise<void> ReplicaCaller::call(uint8_t method, Arguments& arguments, uint32_t callee,
                                      uint64_t epoch, net::RpcConnection& connection) {
  if (method % 8 == 0) {
    auto request = connection.bootstrap().castAs<schema::PsDataGate>().replicaRequest();
    fillHello(arguments, callee, true, cluster::Durability::kReplica, request.initHello());
    auto hello = request.send();
    replica_ = hello.getReplica();
    return hello.ignoreResult();
  }
  KJ_IF_MAYBE (replica, replica_) {
    switch (method % 8) {
      case 1: {
        auto request = replica->arenaRequest();
        request.setIndex(static_cast<uint32_t>(arguments.count()));
        fillArena(arguments, [&](uint32_t chunks) { return request.initValues(chunks); });
        return sent(request, "arena");
      }
      case 2: {
        auto request = replica->seedRequest();
        fillReplicaState(arguments, epoch, request.initState());
        return sent(request, "seed");
      }
      case 3:
        return sent(replica->fetchRequest(), "fetch");
      case 4: {
        auto request = replica->fetchedRequest();
        request.setIndex(static_cast<uint32_t>(arguments.count()));
        return sent(request, "fetched");
      }
      default: {
        auto request = replica->updateRequest();
        fillReplicaUpdate(arguments, epoch, request);
        fillArena(arguments, [&](uint32_t chunks) { return request.initGradient(chunks); });
        fillRows(arguments, [&](uint32_t slices) { return request.initRows(slices); });
        return sent(request, "update");
      }
    }
  }
  return kj::READY_NOW;
}

}  // namespace dtf::fuzz
