#pragma once

// Calls of a chief that gathers its checkpoints or leaves the shards with the ps, with arguments
// from the fuzzer's bytes.

#include <cstdint>
#include <string_view>
#include <vector>

#include "common/base/checksum.h"
#include "common/wire/ps.capnp.h"
#include "tests/fuzz/arguments.h"

namespace dtf::fuzz {

inline constexpr uint8_t kTravelListMax = 64;
inline constexpr uint8_t kStayingMethod = 251;

template <class Request>
void fillPosition(const std::vector<uint64_t>& numbers, Request& request) {
  auto position = request.initPosition(static_cast<uint32_t>(numbers.size()));
  for (uint32_t i = 0; i < position.size(); ++i) position.set(i, numbers[i]);
}

// Mostly of the shards of one checkpoint.
inline kj::StringPtr stayingName(Arguments& arguments) {
  const uint8_t kind = arguments.byte();
  return kind < 200 ? kj::StringPtr("step-7-1.1") : arguments.text();
}

template <class Send>
void stayingCall(schema::PsStaying::Client ps, Arguments& arguments,
                 const std::vector<uint64_t>& last_cut, const Send& send) {
  switch (arguments.byte() % 4) {
    case 0: {
      auto request = ps.saveRequest();
      request.setName(stayingName(arguments));
      fillPosition(last_cut, request);
      return send(request, "save staying");
    }
    case 1: {
      auto request = ps.findRequest();
      request.setName(stayingName(arguments));
      for (auto file : request.initFiles(arguments.byte() % kTravelListMax)) {
        file.setName(arguments.byte() % 2 == 0 ? kj::StringPtr("shard-0-of-2.safetensors")
                                               : arguments.text());
        file.setBytes(arguments.count());
        file.setChecksum(arguments.count());
      }
      return send(request, "find staying");
    }
    case 2: {
      auto request = ps.fetchRequest();
      request.setName(stayingName(arguments));
      request.setFile(arguments.byte() < 200 ? kj::StringPtr("shard-0-of-2.safetensors")
                                             : arguments.text());
      request.setOffset(arguments.count());
      request.setBytes(static_cast<uint32_t>(arguments.count()));
      return send(request, "fetch staying");
    }
    default: {
      auto request = ps.dropRequest();
      request.setName(stayingName(arguments));
      return send(request, "drop staying");
    }
  }
}

// `last_cut`: the last position requested. `send` takes a request.
template <class Send>
void travelCall(schema::PsCheckpoint::Client& checkpoint, uint8_t method, Arguments& arguments,
                const std::vector<uint64_t>& last_cut, const Send& send) {
  if (method == kStayingMethod)
    return stayingCall(checkpoint.stayingRequest().send().getStaying(), arguments, last_cut, send);
  switch (method % 6) {
    case 0: {
      auto request = checkpoint.seeRequest();
      request.setFile(arguments.folder());
      request.setSeconds(arguments.number<double>());
      return send(request);
    }
    case 1: {
      auto request = checkpoint.stageRequest();
      fillPosition(last_cut, request);
      return send(request);
    }
    case 2: {
      auto request = checkpoint.fetchRequest();
      request.setOffset(arguments.count());
      request.setBytes(static_cast<uint32_t>(arguments.count()));
      return send(request);
    }
    case 3: {
      auto request = checkpoint.releaseRequest();
      request.setSaved(arguments.byte() % 2 == 1);
      return send(request);
    }
    case 4: {
      auto request = checkpoint.expectRequest();
      request.setGlobalStep(arguments.count());
      auto batches = request.initWorkerBatches(arguments.byte() % kTravelListMax);
      for (uint32_t i = 0; i < batches.size(); ++i) batches.set(i, arguments.count());
      request.initClocks(arguments.byte() % kTravelListMax);
      return send(request);
    }
    default: {
      auto request = checkpoint.bringRequest();
      request.setArena(static_cast<uint32_t>(arguments.count()));
      request.setOffset(arguments.count());
      const std::string_view values = arguments.take(arguments.byte());
      request.setValues(
          kj::arrayPtr(reinterpret_cast<const kj::byte*>(values.data()), values.size()));
      request.setChecksum(checksumOf(values));
      return send(request);
    }
  }
}

}  // namespace dtf::fuzz
