#include "common/net/message_stream.h"

#include <utility>

#include "common/net/frame_reader.h"
#include "common/net/frame_writer.h"
#include "common/net/socket_options.h"

namespace dtf::net {

AsioMessageStream::AsioMessageStream(AsioEventPort& port, Transport transport, const Limits& limits,
                                     std::shared_ptr<BufferPool> pool)
    : certified_peer_(transport.tls == nullptr ? "" : transport.tls->peer()),
      is_on_this_host_(hasBothEndsHere(transport.socket.native_handle())) {
  auto link = std::make_shared<FrameLink>(port, std::move(transport));
  reader_ = std::make_shared<FrameReader>(link, limits, std::move(pool));
  writer_ = std::make_shared<FrameWriter>(std::move(link));
}

AsioMessageStream::~AsioMessageStream() noexcept(false) {
  writer_->close();
}

bool AsioMessageStream::writeNow(kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>> segments) {
  return writer_->writeNow(segments);
}

kj::Maybe<kj::Own<capnp::MessageReader>> AsioMessageStream::takeReady(
    capnp::ReaderOptions options) {
  kj::Own<capnp::MessageReader> message;
  if (reader_->take(options, message) != FrameReader::Next::kMessage) return nullptr;
  return kj::mv(message);
}

kj::Promise<kj::Maybe<capnp::MessageReaderAndFds>> AsioMessageStream::tryReadMessage(
    kj::ArrayPtr<kj::AutoCloseFd>, capnp::ReaderOptions options, kj::ArrayPtr<capnp::word>) {
  using Result = kj::Maybe<capnp::MessageReaderAndFds>;
  kj::Own<capnp::MessageReader> message;
  switch (reader_->take(options, message)) {
    case FrameReader::Next::kMessage:
      return Result(capnp::MessageReaderAndFds{kj::mv(message), nullptr});
    case FrameReader::Next::kEnd:
      return Result(nullptr);
    case FrameReader::Next::kFailed:
      return kj::cp(reader_->failure());
    case FrameReader::Next::kNeedMore:
      break;
  }
  return reader_->whenMore().then(
      [this, options] { return tryReadMessage(nullptr, options, nullptr); });
}

kj::Promise<void> AsioMessageStream::writeMessage(
    kj::ArrayPtr<const int>, kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>> segments) {
  return writer_->write(segments);
}

kj::Promise<void> AsioMessageStream::writeMessages(
    kj::ArrayPtr<kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>>> messages) {
  kj::Promise<void> written = kj::READY_NOW;
  for (auto& segments : messages)
    written = written.then([writer = writer_, segments] { return writer->write(segments); });
  return written;
}

kj::Promise<void> AsioMessageStream::end() {
  return writer_->end();
}

void AsioMessageStream::keepUntilWritten(const void* data, std::shared_ptr<const void> owner) {
  writer_->keepUntilWritten(data, std::move(owner));
}

void AsioMessageStream::sendAsWritten(const void* data, std::shared_ptr<const SendGate> gate) {
  writer_->sendAsWritten(data, std::move(gate));
}

void AsioMessageStream::sendMore() {
  writer_->sendMore();
}

std::shared_ptr<const void> AsioMessageStream::pin(const void* data) {
  return reader_->pin(data);
}

void AsioMessageStream::setLimits(const Limits& limits) {
  reader_->setLimits(limits);
}

uint64_t AsioMessageStream::queuedBytes() const {
  return writer_->queuedBytes();
}

Traffic AsioMessageStream::traffic() const {
  return {reader_->movedBytes(), writer_->movedBytes()};
}

std::string AsioMessageStream::violation() const {
  return reader_->violation();
}

std::string AsioMessageStream::damage() const {
  return reader_->damage();
}

void AsioMessageStream::sendUnchecked() {
  writer_->sendUnchecked();
}

std::string AsioMessageStream::certifiedPeer() const {
  return certified_peer_;
}

size_t AsioMessageStream::keptCount() const {
  return writer_->keptCount();
}

}  // namespace dtf::net
