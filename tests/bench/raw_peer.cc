#include "tests/bench/raw_peer.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>

#include "common/base/error.h"
#include "common/net/buffer_pool.h"
#include "common/net/socket_options.h"

namespace dtf::bench {

namespace {

enum class Operation : uint64_t { kPing = 1, kPull = 2, kPush = 3, kExchange = 4 };

struct Request {
  Operation operation;
  uint64_t bytes;
};

std::shared_ptr<std::byte> touchedBuffer(size_t bytes) {
  auto buffer = net::BufferPool::create()->take(bytes);
  std::memset(buffer.get(), 1, bytes);
  return buffer;
}

bool receiveAll(int fd, void* data, size_t bytes) {
  auto* at = static_cast<std::byte*>(data);
  while (bytes > 0) {
    const ssize_t got = ::recv(fd, at, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

bool sendAll(int fd, const void* data, size_t bytes) {
  const auto* at = static_cast<const std::byte*>(data);
  while (bytes > 0) {
    const ssize_t sent = ::send(fd, at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    bytes -= static_cast<size_t>(sent);
  }
  return true;
}

void require(bool done) {
  if (!done) throw Error(ErrorCode::kUnavailable, "the raw socket's server is gone");
}

}  // namespace

void serveRaw(const Fd& listening, size_t bytes_max) {
  const Fd fd(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
  net::setSocketOptions(fd.get());
  const auto buffer = touchedBuffer(bytes_max);
  const uint64_t done = 1;
  Request request;
  while (receiveAll(fd.get(), &request, sizeof(request)) && request.bytes <= bytes_max) {
    if (request.operation == Operation::kPull) {
      if (!sendAll(fd.get(), buffer.get(), request.bytes)) return;
      continue;
    }
    if (!receiveAll(fd.get(), buffer.get(), request.bytes) ||
        !(request.operation == Operation::kExchange ? sendAll(fd.get(), buffer.get(), request.bytes)
                                                    : sendAll(fd.get(), &done, sizeof(done))))
      return;
  }
}

RawClient::RawClient(uint16_t port, size_t bytes_max)
    : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), buffer_(touchedBuffer(bytes_max)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  require(::connect(fd_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
  net::setSocketOptions(fd_.get());
}

void RawClient::ping() {
  const Request request{Operation::kPing, 0};
  uint64_t done;
  require(sendAll(fd_.get(), &request, sizeof(request)) &&
          receiveAll(fd_.get(), &done, sizeof(done)));
}

void RawClient::pull(size_t bytes) {
  const Request request{Operation::kPull, bytes};
  require(sendAll(fd_.get(), &request, sizeof(request)) &&
          receiveAll(fd_.get(), buffer_.get(), bytes));
}

void RawClient::push(size_t bytes) {
  const Request request{Operation::kPush, bytes};
  uint64_t done;
  require(sendAll(fd_.get(), &request, sizeof(request)) &&
          sendAll(fd_.get(), buffer_.get(), bytes) && receiveAll(fd_.get(), &done, sizeof(done)));
}

void RawClient::renewBuffer(size_t bytes_max) {
  buffer_ = nullptr;
  buffer_ = net::BufferPool::create()->take(bytes_max);
}

void RawClient::exchange(size_t bytes) {
  const Request request{Operation::kExchange, bytes};
  require(sendAll(fd_.get(), &request, sizeof(request)) &&
          sendAll(fd_.get(), buffer_.get(), bytes) && receiveAll(fd_.get(), buffer_.get(), bytes));
}

}  // namespace dtf::bench
