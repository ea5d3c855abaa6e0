#include "common/net/message_stream.h"

#include <gmock/gmock.h>

#include "tests/unit/net/message_stream_fixture.h"

// AsioMessageStream below the RPC system, plain and with TLS.

namespace dtf::net::testing {
namespace {

// Sizes around each boundary: copied or gathered, input buffer or own buffer, heap or pool.
TEST_P(MessageStreamTest, CarriesMessagesOfAllSizesInOrder) {
  makeStreams({});
  for (const size_t bytes : {0, 1, 8, 1000, 16 << 10, (16 << 10) + 1, 60 << 10, (64 << 10) - 32,
                             64 << 10, 200 << 10, 256 << 10, (256 << 10) + 7, 3 << 20}) {
    capnp::MallocMessageBuilder message;
    fill(message, bytes);
    auto sent = send(message).eagerlyEvaluate(nullptr);
    EXPECT_EQ(checksumOf(*next()), patternSum(bytes)) << bytes << " bytes";
    waitFor(reactor_, kj::mv(sent));
  }
}

TEST_P(MessageStreamTest, ManySmallMessagesTravelTogether) {
  makeStreams({});
  kj::Vector<kj::Own<capnp::MallocMessageBuilder>> kept;
  for (size_t i = 0; i < 5000; ++i) {
    kept.add(kj::heap<capnp::MallocMessageBuilder>());
    fill(*kept.back(), i % 50);
    waitFor(reactor_, send(*kept.back()));
    if (i % 500 != 499) continue;
    for (size_t k = i - 499; k <= i; ++k) ASSERT_EQ(checksumOf(*next()), patternSum(k % 50));
  }
}

TEST_P(MessageStreamTest, EndOfStreamIsSeenBetweenMessages) {
  makeStreams({});
  capnp::MallocMessageBuilder message;
  fill(message, 100);
  waitFor(reactor_, send(message));
  waitFor(reactor_, sender_->end());
  next();
  EXPECT_TRUE(waitFor(reactor_, read()) == nullptr);
}

INSTANTIATE_TEST_SUITE_P(Wires, MessageStreamTest, ::testing::Values(Wire::kPlain, Wire::kTls),
                         wireName);

}  // namespace
}  // namespace dtf::net::testing
