// FrameWriter, second part: writing from its buffers to the socket.

#include <kj/debug.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "common/net/error_bridge.h"
#include "common/net/frame_check.h"
#include "common/net/frame_writer.h"

namespace dtf::net {

namespace {
constexpr size_t kRecordBytes = 16 << 10;  // the largest plain text of a TLS record
// the end of a large message that is hashed before it is sent
constexpr size_t kSummedBytesMax = 64 << 10;
}  // namespace

void FrameWriter::flushSoon() {
  if (armed_ || flush_due_) return;
  flush_due_ = true;
  link_->port.whenDrained([self = shared_from_this()] {
    self->flush_due_ = false;
    if (!self->armed_ && !self->error_) self->pump();
  });
}

void FrameWriter::pump() {
  DTF_CHECK(!armed_);
  size_t budget = kBurstBytes;
  for (;;) {
    Sent sent;
    sumUp();
    if (hasOutput() && !mustWait())
      sent = budget > 0 ? sendSome(budget) : Sent::kWouldBlock;
    else if (link_->tls != nullptr && link_->tls->unsent() > 0)
      sent = sendEncrypted();
    else
      break;
    if (sent == Sent::kWouldBlock) return arm();
    if (sent == Sent::kFailed) return;
  }
  if (!hasOutput()) wakeDrained();
}

// Hashes the end of a message before it is sent, so that the checksum follows at once. Earlier
// parts are hashed after the kernel has copied them, which has brought them into the cache.
void FrameWriter::sumUp() {
  if (!large_ || !checks_ || large_->is_summed || large_->bytes_left > kSummedBytesMax) return;
  Large& large = *large_;
  const size_t checksum_piece = large.pieces.size() - 1;
  for (size_t i = large.next_piece; i < checksum_piece; ++i) {
    const iovec& piece = large.pieces[i];
    const SendGate* gate = large.gates[i].get();
    if (gate != nullptr && gate->sendable(piece.iov_base, piece.iov_len) < piece.iov_len) return;
  }
  for (size_t i = large.next_piece; i < checksum_piece; ++i)
    hash_->update(large.pieces[i].iov_base, large.pieces[i].iov_len);
  large.checksum = hash_->value();
  large.is_summed = true;
}

// Returns whether the next bytes are still being written.
bool FrameWriter::mustWait() const {
  iovec piece[1];
  return gather(piece, 1) == 0;
}

void FrameWriter::sendMore() {
  if (large_ && !armed_ && !error_) pump();
}

bool FrameWriter::hasOutput() {
  if (flight_at_ < flight_.size() || large_) return true;
  flight_.clear();
  flight_at_ = 0;
  std::swap(flight_, pending_);
  return !flight_.empty();
}

FrameWriter::Sent FrameWriter::sendSome(size_t& budget) {
  if (link_->tls != nullptr) return encryptSome(budget);
  iovec pieces[64];
  msghdr message{};
  message.msg_iov = pieces;
  message.msg_iovlen = gather(pieces, std::size(pieces));
  const ssize_t sent =
      ::sendmsg(link_->socket.native_handle(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0) {
    if (errno == EINTR) return Sent::kProgress;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return Sent::kWouldBlock;
    fail(error_code(errno, asio::error::get_system_category()));
    return Sent::kFailed;
  }
  budget -= std::min(budget, static_cast<size_t>(sent));
  consume(static_cast<size_t>(sent));
  return Sent::kProgress;
}

// Encrypts one record of the next bytes; many records are sent at a time.
FrameWriter::Sent FrameWriter::encryptSome(size_t& budget) {
  iovec pieces[64];
  const size_t count = gather(pieces, std::size(pieces));
  DTF_CHECK(count > 0);
  std::byte joined[kRecordBytes];
  const void* from = pieces[0].iov_base;
  size_t bytes = pieces[0].iov_len;
  if (count > 1 && bytes < kRecordBytes) {  // a frame's header and the tensors behind it
    from = joined;
    bytes = 0;
    for (size_t i = 0; i < count && bytes < kRecordBytes; ++i) {
      const size_t part = std::min(pieces[i].iov_len, kRecordBytes - bytes);
      std::memcpy(joined + bytes, pieces[i].iov_base, part);
      bytes += part;
    }
  }
  if (!link_->socket.is_open()) {  // the number may belong to another connection by now
    fail(asio::error::bad_descriptor);
    return Sent::kFailed;
  }
  size_t put = 0;
  switch (link_->tls->write(from, bytes, put)) {
    case TlsSession::Io::kDone:
      budget -= std::min(budget, put);
      consume(put);
      return Sent::kProgress;
    case TlsSession::Io::kWantWrite:
      return sendEncrypted();
    default:
      fail(asio::error::connection_reset);
      return Sent::kFailed;
  }
}

FrameWriter::Sent FrameWriter::sendEncrypted() {
  if (!link_->socket.is_open()) {
    fail(asio::error::bad_descriptor);
    return Sent::kFailed;
  }
  switch (link_->tls->flush()) {
    case TlsSession::Io::kDone:
      return Sent::kProgress;
    case TlsSession::Io::kWantWrite:
      return Sent::kWouldBlock;
    default:
      fail(asio::error::connection_reset);
      return Sent::kFailed;
  }
}

// Returns the bytes of the large message that may be sent: up to the part that sumUp() hashes.
uint64_t FrameWriter::mayLeave() const {
  const uint64_t left = large_->bytes_left;
  if (!checks_ || large_->is_summed) return left;
  return left > kSummedBytesMax ? std::min<uint64_t>(left - kSummedBytesMax, kHashedBytesMax)
                                : left - kChecksumBytes;
}

size_t FrameWriter::gather(iovec* pieces, size_t pieces_max) const {
  size_t count = 0;
  if (flight_at_ < flight_.size())
    pieces[count++] = {const_cast<std::byte*>(flight_.data()) + flight_at_,
                       flight_.size() - flight_at_};
  if (large_) {
    uint64_t may_leave = mayLeave();
    for (size_t i = large_->next_piece; i < large_->pieces.size() && count < pieces_max; ++i) {
      const iovec& piece = large_->pieces[i];
      const SendGate* gate = large_->gates[i].get();
      const size_t written =
          gate == nullptr ? piece.iov_len : gate->sendable(piece.iov_base, piece.iov_len);
      const size_t part = std::min(written, may_leave);
      if (part > 0) pieces[count++] = {piece.iov_base, part};
      if (part < piece.iov_len) break;
      may_leave -= part;
    }
  }
  return count;
}

void FrameWriter::consume(size_t bytes) {
  DTF_CHECK(bytes <= queuedBytes());
  moved_bytes_ += bytes;
  const size_t copied = std::min(bytes, flight_.size() - flight_at_);
  flight_at_ += copied;
  bytes -= copied;
  if (!large_) return;
  large_->bytes_left -= bytes;
  const bool is_unsummed = checks_ && !large_->is_summed;
  while (bytes > 0) {
    DTF_CHECK(large_->next_piece < large_->pieces.size());
    iovec& piece = large_->pieces[large_->next_piece];
    const size_t part = std::min(bytes, piece.iov_len);
    if (is_unsummed) hash_->update(piece.iov_base, part);
    piece.iov_base = static_cast<std::byte*>(piece.iov_base) + part;
    piece.iov_len -= part;
    bytes -= part;
    if (piece.iov_len == 0) ++large_->next_piece;
  }
  if (large_->bytes_left == 0) finishLarge();
}

void FrameWriter::finishLarge() {
  DTF_CHECK(large_ != nullptr && large_->next_piece == large_->pieces.size());
  const auto large = std::exchange(large_, nullptr);
  large->owners.clear();
  if (auto* fulfiller = std::exchange(large->fulfiller, nullptr)) fulfiller->fulfill();
  link_->port.schedule();
}

void FrameWriter::arm() {
  DTF_CHECK(!armed_);  // Asio waits once
  armed_ = true;
  link_->socket.async_wait(Socket::wait_write, [self = shared_from_this()](const error_code& ec) {
    AsioEventPort::Io io(self->link_->port);
    self->armed_ = false;
    if (self->error_) return;
    if (ec) return self->fail(ec);
    self->pump();
  });
}

void FrameWriter::fail(const error_code& ec) {
  DTF_CHECK(ec && !error_);
  error_ = ec;
  if (const auto large = std::exchange(large_, nullptr)) {
    large->owners.clear();
    if (auto* fulfiller = std::exchange(large->fulfiller, nullptr))
      fulfiller->reject(toKj(ec, "write"));
  }
  for (auto* waiter : std::exchange(drain_waiters_, {})) waiter->reject(toKj(ec, "write"));
  error_code ignored;
  link_->socket.shutdown(Socket::shutdown_both,
                         ignored);  // RPC hides write errors: the read must fail as well
  link_->port.schedule();
}

void FrameWriter::wakeDrained() {
  if (drain_waiters_.empty()) return;
  for (auto* waiter : std::exchange(drain_waiters_, {})) waiter->fulfill();
  link_->port.schedule();
}

}  // namespace dtf::net
