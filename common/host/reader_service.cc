#include "common/host/reader_service.h"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <variant>

#include "common/arena/parameter_layout.h"
#include "common/net/error_bridge.h"
#include "common/net/timer.h"
#include "common/wire/arena_codec.h"

namespace dtf::host {

namespace {

// One reader's session.
// Owns: the parameters that are kept for it.
// Threads: data loop only.
class ReaderSession final : public schema::PsReader::Server {
 public:
  ReaderSession(ShardHost& host, wire::ConnectionRef connection)
      : loop_(host.data()),
        shard_(host.shard()),
        connection_(std::move(connection)),
        number_(shard_.readers().open()) {}
  ~ReaderSession() noexcept(false) { leave(); }
  ReaderSession(const ReaderSession&) = delete;
  ReaderSession& operator=(const ReaderSession&) = delete;

  kj::Promise<void> capture(CaptureContext context) override {
    net::bridgeErrors([&] {
      // Each reply that is not sent yet holds the version that it is a part of.
      if (connection_->connection != nullptr && connection_->connection->queuedBytes() > 0)
        throw Error(ErrorCode::kUnavailable,
                    "this reader has not received the parameters that it requested before");
      if (!number_) number_ = shard_.readers().open();
    });
    captured_ = nullptr;
    forgetting_ = nullptr;
    std::optional<uint64_t> step;
    if (!context.getParams().getNewest()) step = context.getParams().getStep();
    auto answered = kj::newPromiseAndFulfiller<shard::ReadReply>();
    // std::function copies its callable, and a fulfiller can't be copied.
    const auto fulfiller = std::make_shared<kj::Own<kj::PromiseFulfiller<shard::ReadReply>>>(
        kj::mv(answered.fulfiller));
    shard_.readers().read(*number_, step, [fulfiller](shard::ReadAnswer answer) {
      if (const Error* error = std::get_if<Error>(&answer))
        return (*fulfiller)->reject(net::toKj(*error));
      (*fulfiller)->fulfill(std::move(std::get<shard::ReadReply>(answer)));
    });
    return answered.promise.then([this, context](shard::ReadReply reply) mutable {
      auto results = context.getResults();
      results.setCaptured(reply.parameters != nullptr);
      results.setStep(reply.step);
      results.setEpoch(reply.epoch);
      captured_ = std::move(reply.parameters);
      forgetLater();
    });
  }

  kj::Promise<void> values(ValuesContext context) override {
    const uint64_t offset = context.getParams().getOffset();
    const uint64_t count = context.getParams().getCount();
    net::bridgeErrors([&] {
      if (captured_ == nullptr)
        throw Error(ErrorCode::kUnavailable,
                    fmt::format("no parameters are kept for this reader: it made no call for {} s, "
                                "or captured none; take a version again",
                                toSeconds(kCaptureMax)));
      const uint64_t elements = captured_->elements();
      if (offset % arena::kSliceAlignment != 0 || count % arena::kSliceAlignment != 0 ||
          count > kReadElementsMax || offset > elements || count > elements - offset)
        throw Error(ErrorCode::kBadData,
                    fmt::format("a read of {} elements from element {} does not fit a shard of {}",
                                count, offset, elements));
    });
    forgetLater();
    const std::span<const float> part(captured_->data() + offset, count);
    if (connection_->connection == nullptr) return kj::READY_NOW;
    wire::referenceArena(part, captured_, context.getResults().initValues(wire::arenaChunks(count)),
                         connection_->connection->stream());
    return kj::READY_NOW;
  }

 private:
  void forgetLater() {
    forgetting_ = loop_.timer()
                      .afterDelay(net::toKj(kCaptureMax))
                      .then([this] { leave(); })
                      .eagerlyEvaluate(nullptr);
  }
  void leave() {
    captured_ = nullptr;
    if (number_) shard_.readers().close(*std::exchange(number_, std::nullopt));
  }

  net::Loop& loop_;
  shard::Shard& shard_;
  const wire::ConnectionRef connection_;
  std::optional<uint32_t> number_;  // among the shard's readers; nullopt: idle for kCaptureMax
  std::shared_ptr<const arena::ParameterVersion> captured_;  // null: none
  kj::Promise<void> forgetting_ = nullptr;
};

}  // namespace

schema::PsReader::Client makeReader(ShardHost& host, wire::ConnectionRef connection) {
  return kj::heap<ReaderSession>(host, std::move(connection));
}

}  // namespace dtf::host
