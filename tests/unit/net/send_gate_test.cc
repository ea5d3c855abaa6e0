#include "common/net/send_gate.h"

#include "tests/unit/net/message_stream_fixture.h"

namespace dtf::net::testing {
namespace {

TEST(SendGate, SaysHowMuchOfEachPartMayBeSent) {
  const std::vector<std::byte> memory(1000);
  SendGate gate(memory.data(), memory.size());
  EXPECT_EQ(gate.sendable(memory.data(), 1000), 0u);
  EXPECT_FALSE(gate.isOpen());
  gate.open(600);
  EXPECT_EQ(gate.sendable(memory.data(), 1000), 600u);
  EXPECT_EQ(gate.sendable(memory.data() + 100, 300), 300u);
  EXPECT_EQ(gate.sendable(memory.data() + 500, 300), 100u);
  EXPECT_EQ(gate.sendable(memory.data() + 600, 400), 0u);
  EXPECT_FALSE(gate.isOpen());
  gate.open(1000);
  EXPECT_EQ(gate.sendable(memory.data() + 600, 400), 400u);
  EXPECT_TRUE(gate.isOpen());
}

TEST(SendGateDeathTest, WhatMayBeSentIsNotTakenBack) {
  const std::vector<std::byte> memory(1000);
  SendGate gate(memory.data(), memory.size());
  gate.open(600);
  EXPECT_DEATH(gate.open(599), "check failed");
  EXPECT_DEATH(gate.open(1001), "check failed");
  EXPECT_DEATH(gate.sendable(memory.data() + 1, 1000), "check failed");
}

// A message that is sent while it is written.
class SentAsWritten : public MessageStreamTest {
 protected:
  ~SentAsWritten() noexcept override {}
  static constexpr size_t kBytes = 4 << 20;

  // Sends all of `memory_`, of which nothing is written yet.
  void begin() {
    makeStreams({});
    refer(message_, memory_.data(), kBytes);
    sender_->keepUntilWritten(memory_.data(), owner_);
    sender_->sendAsWritten(memory_.data(), gate_);
    sent_ = send(message_).eagerlyEvaluate(nullptr);
  }
  // Unwritten bytes are poison, which the checksum shows.
  void writeUpTo(size_t bytes) {
    for (; written_ < bytes; ++written_) memory_[written_] = patternAt(written_);
    gate_->open(bytes);
    sender_->sendMore();
  }
  // Waits until the receiver's kernel or reader has all bytes that may be sent.
  void awaitMoved(uint64_t bytes) {
    auto reading =
        read().then([](Read&&) { ADD_FAILURE() << "it isn't whole"; }).eagerlyEvaluate(nullptr);
    runUntil(reactor_, [&] { return receiver_->traffic().received >= bytes; });
  }

  std::vector<std::byte> memory_ = std::vector<std::byte>(kBytes, std::byte{0xee});
  std::shared_ptr<SendGate> gate_ = std::make_shared<SendGate>(memory_.data(), kBytes);
  std::shared_ptr<int> owner_ = std::make_shared<int>(0);
  capnp::MallocMessageBuilder message_;
  kj::Promise<void> sent_ = nullptr;
  size_t written_ = 0;
};

TEST_P(SentAsWritten, LeavesAsFarAsItIsWrittenAndArrivesWhole) {
  begin();
  for (const size_t bytes :
       {size_t{1}, size_t{1000}, size_t{70'000}, kBytes / 2 + 3, kBytes - 64}) {
    writeUpTo(bytes);
    awaitMoved(bytes);
    EXPECT_LT(receiver_->traffic().received, bytes + (64 << 10)) << "that, its header, its records";
    EXPECT_GE(sender_->queuedBytes(), kBytes - bytes);
  }
  writeUpTo(kBytes);
  EXPECT_EQ(checksumOf(*next()), patternSum(kBytes));
  waitFor(reactor_, kj::mv(sent_));
  EXPECT_EQ(owner_.use_count(), 1);
  EXPECT_EQ(gate_.use_count(), 1);
  EXPECT_EQ(sender_->queuedBytes(), 0u);
}

TEST_P(SentAsWritten, WhatIsWrittenBehindItWaits) {
  begin();
  writeUpTo(kBytes / 2);
  capnp::MallocMessageBuilder small;
  fill(small, 100);
  EXPECT_FALSE(sender_->writeNow(small.getSegmentsForOutput()));
  sent_ = sent_.then([&] { return send(small); }).eagerlyEvaluate(nullptr);
  awaitMoved(kBytes / 2);
  writeUpTo(kBytes);
  EXPECT_EQ(checksumOf(*next()), patternSum(kBytes));
  EXPECT_EQ(checksumOf(*next()), patternSum(100));
}

TEST_P(SentAsWritten, OfSeveralPiecesEachWaitsForItsOwnPart) {
  makeStreams({});
  constexpr size_t kHalf = kBytes / 2;
  auto list = message_.initRoot<Echo::PushParams>();
  list.adoptData(message_.getOrphanage().referenceExternalData(
      capnp::Data::Reader(reinterpret_cast<const kj::byte*>(memory_.data()), kHalf)));
  // The message doesn't refer to the second half: the stream only sees segments.
  const auto segments = message_.getSegmentsForOutput();
  std::vector<kj::ArrayPtr<const capnp::word>> all(segments.begin(), segments.end());
  all.emplace_back(reinterpret_cast<const capnp::word*>(memory_.data() + kHalf),
                   kHalf / sizeof(capnp::word));
  for (const size_t at : {size_t{0}, kHalf}) sender_->sendAsWritten(memory_.data() + at, gate_);
  sent_ = sender_->writeMessage(nullptr, {all.data(), all.size()}).eagerlyEvaluate(nullptr);
  writeUpTo(kHalf - 8);
  awaitMoved(kHalf - 8);
  writeUpTo(kHalf + 8);
  awaitMoved(kHalf + 8);
  EXPECT_LT(receiver_->traffic().received, kHalf + (64 << 10));
  writeUpTo(kBytes);
  EXPECT_EQ(checksumOf(*next()), patternSum(kHalf));
  waitFor(reactor_, kj::mv(sent_));
}

TEST_P(SentAsWritten, OneThatIsNeverWrittenEndsWithTheConnection) {
  begin();
  writeUpTo(kBytes / 2);
  auto reading = read().eagerlyEvaluate(nullptr);
  runUntil(reactor_, [&] { return receiver_->traffic().received >= kBytes / 2; });
  sent_ = nullptr;
  EXPECT_EQ(failureOf(reactor_, kj::mv(reading)).getType(), kj::Exception::Type::DISCONNECTED);
  sender_ = nullptr;
  EXPECT_EQ(owner_.use_count(), 1);
  EXPECT_EQ(gate_.use_count(), 1);
}

TEST_P(SentAsWritten, APeerThatGoesMeanwhileFailsTheWrite) {
  begin();
  writeUpTo(kBytes / 2);
  receiver_ = nullptr;
  runUntil(reactor_, [&] {
    if (written_ + 4096 < kBytes) writeUpTo(written_ + 4096);
    return owner_.use_count() == 1;
  });
  EXPECT_EQ(failureOf(reactor_, kj::mv(sent_)).getType(), kj::Exception::Type::DISCONNECTED);
}

INSTANTIATE_TEST_SUITE_P(Wires, SentAsWritten, ::testing::Values(Wire::kPlain, Wire::kTls),
                         wireName);

}  // namespace
}  // namespace dtf::net::testing
