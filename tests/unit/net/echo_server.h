#pragma once

// The server and client of echo.capnp, for the tests of common/net and `dtf-bench rpc`.

#include <capnp/orphan.h>

#include <cstring>
#include <memory>
#include <utility>

#include "common/net/buffer_pool.h"
#include "common/net/error_bridge.h"
#include "common/net/rpc_connection.h"
#include "tests/unit/net/echo.capnp.h"

namespace dtf::net::testing {

// Float-like bytes that are a function of their position, so that a lost or moved byte shows.
inline std::byte patternAt(uint64_t position) {
  return static_cast<std::byte>((position * 2654435761u) >> 13);
}

inline std::shared_ptr<std::byte> makePattern(BufferPool& pool, size_t bytes) {
  auto buffer = pool.take(bytes);
  for (size_t i = 0; i < bytes; ++i) buffer.get()[i] = patternAt(i);
  return buffer;
}

// Depends on each byte's value and place.
inline uint64_t checksum(const void* data, size_t bytes) {
  const auto* at = static_cast<const unsigned char*>(data);
  uint64_t sum = bytes;
  size_t i = 0;
  for (uint64_t word = 0; i + sizeof(word) <= bytes; i += sizeof(word)) {
    std::memcpy(&word, at + i, sizeof(word));
    sum = sum * 31 + word;
  }
  for (; i < bytes; ++i) sum = sum * 31 + at[i];
  return sum;
}

// State that all sessions of a server share.
struct EchoStore {
  std::shared_ptr<std::byte> bytes;
  size_t size = 0;
  int cancelled_calls = 0;
};

// One connection's session.
class EchoServer final : public Echo::Server {
 public:
  EchoServer(EchoStore& store, RpcConnection& connection)
      : store_(store), connection_(connection) {}

  kj::Promise<void> ping(PingContext) override { return kj::READY_NOW; }

  kj::Promise<void> echo(EchoContext context) override {
    context.getResults().setText(context.getParams().getText());
    return kj::READY_NOW;
  }

  kj::Promise<void> pull(PullContext context) override {
    const uint64_t offset = context.getParams().getOffset();
    const uint64_t bytes = context.getParams().getBytes();
    KJ_REQUIRE(bytes > 0 && offset % 8 == 0 && offset <= store_.size &&
               bytes <= store_.size - offset);
    const capnp::Data::Reader data(reinterpret_cast<const kj::byte*>(store_.bytes.get()) + offset,
                                   bytes);
    auto results = context.getResults(capnp::MessageSize{8, 0});
    results.adoptData(
        capnp::Orphanage::getForMessageContaining(results).referenceExternalData(data));
    connection_.stream().keepUntilWritten(data.begin(), store_.bytes);
    return kj::READY_NOW;
  }

  kj::Promise<void> push(PushContext context) override {
    const auto data = context.getParams().getData();
    if (context.getParams().getPin()) {
      pinned_ = connection_.stream().pin(data.begin());
      pinned_data_ = data.begin();
      pinned_bytes_ = data.size();
    }
    context.getResults(capnp::MessageSize{8, 0})
        .setChecksum(context.getParams().getCheck() ? checksum(data.begin(), data.size())
                                                    : data.size());
    return kj::READY_NOW;
  }

  kj::Promise<void> never(NeverContext context) override {
    context.allowCancellation();
    return kj::Promise<void>(kj::NEVER_DONE).attach(kj::defer([this] {
      ++store_.cancelled_calls;
    }));
  }

  kj::Promise<void> fail(FailContext context) override {
    return bridgeErrors([&]() -> kj::Promise<void> {
      const auto params = context.getParams();
      throw Error(static_cast<ErrorCode>(params.getCode()), params.getMessage().cStr());
    });
  }

  kj::Promise<void> pinnedChecksum(PinnedChecksumContext context) override {
    KJ_REQUIRE(pinned_ != nullptr, "nothing is pinned");
    context.getResults().setChecksum(checksum(pinned_data_, pinned_bytes_));
    return kj::READY_NOW;
  }

 private:
  EchoStore& store_;
  RpcConnection& connection_;
  std::shared_ptr<const void> pinned_;
  const void* pinned_data_ = nullptr;
  size_t pinned_bytes_ = 0;
};

inline RpcConnection::MakeBootstrap makeEcho(EchoStore& store) {
  return [&store](RpcConnection& connection) -> capnp::Capability::Client {
    return kj::heap<EchoServer>(store, connection);
  };
}

inline kj::Promise<capnp::Response<Echo::PullResults>> pull(Echo::Client& client, uint64_t offset,
                                                            uint64_t bytes) {
  auto request = client.pullRequest(capnp::MessageSize{8, 0});
  request.setOffset(offset);
  request.setBytes(bytes);
  return request.send();
}

// Sends `bytes` bytes at `data`, which `owner` keeps alive, by reference.
inline kj::Promise<uint64_t> push(Echo::Client& client, MessageStream& stream,
                                  const std::byte* data, size_t bytes,
                                  std::shared_ptr<const void> owner, bool pin = false,
                                  bool check = true) {
  auto request = client.pushRequest(capnp::MessageSize{16, 0});
  const capnp::Data::Reader reader(reinterpret_cast<const kj::byte*>(data), bytes);
  request.adoptData(capnp::Orphanage::getForMessageContaining(Echo::PushParams::Builder(request))
                        .referenceExternalData(reader));
  request.setPin(pin);
  request.setCheck(check);
  stream.keepUntilWritten(data, std::move(owner));
  return request.send().then(
      [](capnp::Response<Echo::PushResults>&& response) { return response.getChecksum(); });
}

}  // namespace dtf::net::testing
