#include "common/net/rpc_connection.h"

#include <capnp/message.h>
#include <capnp/rpc-twoparty.h>
#include <kj/debug.h>

#include <utility>

#include "common/base/check.h"
#include "common/net/damage.h"
#include "common/net/two_party_network.h"

namespace dtf::net {

namespace {

using capnp::rpc::twoparty::Side;
using capnp::rpc::twoparty::VatId;

// capnp's traversal limit bounds the size of a message and the amount read from it, with one number
// for all messages. Our Limits bound the size before any allocation, and the frame reader lowers
// the limit to a multiple of each message's size.
capnp::ReaderOptions readerOptions() {
  capnp::ReaderOptions options;
  options.traversalLimitInWords = uint64_t{1} << 40;
  return options;
}

}  // namespace

struct RpcConnection::Rpc {
  // Client. `owner` outlives this.
  explicit Rpc(RpcConnection& owner)
      : network(owner.stream(), Side::CLIENT, readerOptions(), UINT64_MAX, noteDamageOf(owner)),
        system(capnp::makeRpcClient(network)) {}
  // Server.
  Rpc(RpcConnection& owner, capnp::Capability::Client bootstrap, uint64_t unread_bytes_max)
      : network(owner.stream(), Side::SERVER, readerOptions(), unread_bytes_max,
                noteDamageOf(owner)),
        system(capnp::makeRpcServer(network, kj::mv(bootstrap))) {}

  static TwoPartyNetwork::OnDamage noteDamageOf(const RpcConnection& owner) {
    return [&owner](const std::string& reason) { noteDamage(owner.peer(), reason); };
  }

  TwoPartyNetwork network;
  capnp::RpcSystem<VatId> system;
};

RpcConnection::RpcConnection(kj::Own<MessageStream> stream, const MakeBootstrap& make_bootstrap,
                             RpcOptions options)
    : options_(std::move(options)),
      stream_(kj::mv(stream)),
      rpc_(kj::heap<Rpc>(*this, make_bootstrap(*this), options_.unread_bytes_max)) {
  DTF_CHECK(options_.calls_bytes_max >= sizeof(capnp::word));
  rpc_->system.setFlowLimit(options_.calls_bytes_max / sizeof(capnp::word));
}

RpcConnection::RpcConnection(kj::Own<MessageStream> stream, RpcOptions options)
    : options_(std::move(options)), stream_(kj::mv(stream)), rpc_(kj::heap<Rpc>(*this)) {
  rpc_->system.setFlowLimit(options_.calls_bytes_max / sizeof(capnp::word));
}

RpcConnection::~RpcConnection() noexcept(false) {}

capnp::Capability::Client RpcConnection::bootstrap() {
  KJ_REQUIRE(rpc_->network.side() == Side::CLIENT, "only a client has a peer's bootstrap");
  capnp::MallocMessageBuilder message(8);
  auto vat = message.initRoot<VatId>();
  vat.setSide(Side::SERVER);
  return rpc_->system.bootstrap(vat);
}

kj::Promise<void> RpcConnection::onDisconnect() {
  return rpc_->network.onDisconnect();
}

uint64_t RpcConnection::queuedBytes() {
  return rpc_->network.queuedBytes() + stream_->queuedBytes();
}

}  // namespace dtf::net
