#include "common/wire/ps/ps_remote.h"

#include <fmt/format.h>

#include <cstring>

#include "common/base/error.h"
#include "common/base/text.h"
#include "common/net/error_bridge.h"
#include "common/wire/remote_codec.h"

namespace dtf::wire {

namespace {

// More arenas than a ps with the most workers has in use.
constexpr size_t kArenasKnownMax = 4096;
constexpr size_t kFirstBytes = 64;  // the smallest arena that isn't empty

}  // namespace

PsRemote::PsRemote(net::Loop& loop, std::shared_ptr<net::RemoteDomain> domain, std::string peer,
                   Duration deadline)
    : domain_(std::move(domain)),
      peer_(std::move(peer)),
      deadline_(deadline),
      channel_(net::RemoteChannel::open(loop, domain_)) {}

kj::Promise<std::unique_ptr<PsRemote>> PsRemote::open(net::Loop& loop, schema::PsData::Client& data,
                                                      std::shared_ptr<net::RemoteDomain> domain,
                                                      const std::string& peer, Duration deadline) {
  auto remote = net::bridgeErrors(
      [&] { return std::make_unique<PsRemote>(loop, std::move(domain), peer, deadline); });
  return data.openRemoteRequest().send().then([remote = kj::mv(remote)](auto&& reply) mutable {
    net::bridgeErrors([&] { remote->connect(reply); });
    auto connected = remote->connected();
    return connected.then([remote = std::move(remote)]() mutable { return std::move(remote); });
  });
}

// Puts a few bytes: their arrival shows that both ends are connected. A UCX 1.13 that still
// connects when its peer ends aborts its process.
kj::Promise<void> PsRemote::connected() {
  const auto first = std::make_shared<Buffer>(kFirstBytes);
  std::memset(first->data(), 0, kFirstBytes);
  return channel_->put(
      wait("to connect to "),
      domain_->registered({first->as<std::byte>(), kFirstBytes}, first, net::RemoteAccess::kNone),
      kFirstBytes, gradient_key_);
}

void PsRemote::connect(schema::PsData::OpenRemoteResults::Reader reply) {
  const std::string ucx = reply.getUcx();
  if (ucx != domain_->version())
    throw Error(ErrorCode::kBadConfig,
                fmt::format("{} has UCX {}, and this task has UCX {}: install one version of "
                            "libucx0 on all hosts, or remove 'transport' from the cluster file",
                            peer_, ucx.empty() ? "of an unknown version" : printable(ucx),
                            domain_->version()));
  channel_->connect(bytesOf(reply.getAddress()));
  gradient_key_ = reply.getGradientKey();
  channel_->learn(decodeRemoteArena(gradient_key_, reply.getGradient()));
}

kj::Promise<void> PsRemote::put(const arena::Gradient& gradient) {
  // A card only reads it.
  auto* const values = const_cast<float*>(gradient.values.data());
  const std::span<std::byte> bytes{reinterpret_cast<std::byte*>(values),
                                   gradient.values.size_bytes()};
  return channel_->put(wait("to put a gradient into "),
                       domain_->registered(bytes, gradient.owner, net::RemoteAccess::kNone),
                       bytes.size(), gradient_key_);
}

void PsRemote::learn(uint64_t key, schema::RemoteArena::Reader arena) {
  if (channel_->knownCount() >= kArenasKnownMax)
    throw Error(ErrorCode::kBadData,
                fmt::format("parameters in more than {} arenas at once", kArenasKnownMax));
  channel_->learn(decodeRemoteArena(key, arena));
}

kj::Promise<void> PsRemote::get(uint64_t key, uint64_t bytes, std::shared_ptr<Buffer>& to) {
  if (to == nullptr || to->bytes() != bytes) to = std::make_shared<Buffer>(bytes);
  return channel_->get(
      wait("to get parameters from "),
      domain_->registered({to->as<std::byte>(), bytes}, to, net::RemoteAccess::kNone), bytes, key);
}

}  // namespace dtf::wire
