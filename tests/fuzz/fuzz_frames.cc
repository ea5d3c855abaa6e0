// A connection's frame reader on any bytes, cut in any way: it returns messages within its limits,
// or ends. The first byte chooses the size of the pieces.

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "common/net/message_stream.h"
#include "common/net/reactor.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace dtf;

constexpr size_t kPiecesMax = 64;
// Small, so that few bytes reach every limit and the pool.
constexpr net::Limits kLimits{.bytes_max = 4096, .segments_max = 4, .pooled_from_bytes = 256};

void check(capnp::MessageReader& message, net::MessageStream& stream, size_t& left) {
  uint64_t bytes = 0;
  for (uint32_t id = 0; id < kLimits.segments_max + 1; ++id) {
    const auto segment = message.getSegment(id);
    bytes += segment.asBytes().size();
    // Every byte must be readable.
    static kj::byte read[kLimits.bytes_max];
    FUZZ_CHECK(segment.asBytes().size() <= sizeof read);
    if (segment.size() > 0) std::memcpy(read, segment.begin(), segment.asBytes().size());
    if (segment.size() > 0) stream.pin(segment.begin());
    FUZZ_CHECK(id < kLimits.segments_max || segment == nullptr);
  }
  FUZZ_CHECK(bytes <= kLimits.bytes_max && bytes <= left);
  left -= bytes;
}

void feed(net::Reactor& reactor, const uint8_t* data, size_t size, size_t piece) {
  net::asio::local::stream_protocol::socket one(reactor.ioc), two(reactor.ioc);
  net::asio::local::connect_pair(one, two);
  const int peer = two.native_handle();
  auto stream = kj::heap<net::AsioMessageStream>(reactor.port, net::Socket(std::move(one)), kLimits,
                                                 net::BufferPool::create());
  size_t left = size;
  bool open = true;
  const auto read = [&] {
    return stream->tryReadMessage(nullptr, capnp::ReaderOptions(), nullptr);
  };
  auto promise = read();
  // Takes the complete messages; an error or the end closes the connection.
  const auto take = [&] {
    while (open && promise.poll(reactor.wait_scope)) {
      KJ_IF_MAYBE (message, promise.wait(reactor.wait_scope)) {
        check(*message->reader, *stream, left);
        promise = read();
      } else {
        open = false;
      }
    }
  };
  const auto failure = kj::runCatchingExceptions([&] {
    for (size_t at = 0; open && at < size; at += piece) {
      const size_t count = std::min(piece, size - at);
      FUZZ_CHECK(::send(peer, data + at, count, MSG_NOSIGNAL | MSG_DONTWAIT) ==
                     static_cast<ssize_t>(count) ||
                 errno == EPIPE || errno == EAGAIN);
      take();
    }
    ::shutdown(peer, SHUT_WR);
    take();
  });
  (void)failure;  // broken frames are refused
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  // One for all inputs; never destroyed: kj's loop must end on the thread that made it.
  static net::Reactor& reactor = *new net::Reactor;
  const size_t piece = data[0] == 0 ? size : std::max<size_t>(data[0], size / kPiecesMax);
  feed(reactor, data + 1, size - 1, piece);
  reactor.ioc.poll();
  return 0;
}
