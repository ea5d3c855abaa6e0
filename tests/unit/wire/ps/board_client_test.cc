#include "common/wire/ps/board_client.h"

#include <gtest/gtest.h>

#include <optional>

#include "common/base/error.h"
#include "common/net/caller_loop.h"
#include "common/net/error_bridge.h"
#include "tests/support/mapped_page.h"

namespace dtf::wire {
namespace {

using dtf::testing::mapped;

// A host on the worker's loop, which answers or not.
class Host final : public net::Polled {
 public:
  explicit Host(const SharedMemory& requests) : board(mapped(requests)) {}
  bool poll() override {
    const auto request = answers ? board.take() : std::nullopt;
    if (request)
      board.answer(board.taken(),
                   {.by_call = by_call, .state = {.next_step = request->exchange.step + 1}});
    return request.has_value();
  }
  bool beforeSleep() override { return poll(); }

  ReplyBoard board;
  bool answers = true;
  bool by_call = false;
};

class BoardClientTest : public ::testing::Test {
 protected:
  explicit BoardClientTest(Duration busy_poll = std::chrono::milliseconds(1)) : loop_(busy_poll) {
    auto board = std::make_unique<RequestBoard>();
    host_.emplace(board->memory());
    board->setReplies(mapped(host_->board.memory()));
    client_.emplace(loop_, std::move(board));
    loop_.addPolled(*host_);
    host_->board.setPolled(true);
  }
  ~BoardClientTest() noexcept override { loop_.removePolled(*host_); }

  std::optional<BoardReply> exchange(uint64_t step) {
    return loop_.call([&] { return client_->exchange({.exchange = {.step = step}}); });
  }

  net::CallerLoop loop_;
  std::optional<Host> host_;
  std::optional<BoardClient> client_;
};

TEST_F(BoardClientTest, AnExchangeNeedsNoMessage) {
  for (uint64_t step = 0; step < 100; ++step) {
    ASSERT_TRUE(client_->isReady());
    const auto reply = exchange(step);
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->state.next_step, step + 1);
  }
}

TEST_F(BoardClientTest, AHostThatDoesNotLookIsCalled) {
  host_->board.setPolled(false);
  EXPECT_FALSE(client_->isReady());
}

TEST_F(BoardClientTest, WithoutAReplyUntilTheLoopSleepsTheCallIsMade) {
  host_->answers = false;
  EXPECT_FALSE(exchange(0));
}

TEST_F(BoardClientTest, AHostThatDoesNotAnswerInTimeIsAskedLessAndLess) {
  host_->answers = false;
  std::vector<int> left_out;
  for (int miss = 0; miss < 8; ++miss) {
    EXPECT_FALSE(exchange(0));
    int tries = 0;
    while (!client_->isReady()) ++tries;
    left_out.push_back(tries);
  }
  EXPECT_EQ(left_out, (std::vector<int>{1, 3, 7, 15, 31, 63, 63, 63}));
  host_->answers = true;
  host_->board.skip();
  EXPECT_TRUE(exchange(1));
  EXPECT_TRUE(client_->isReady()) << "it answers again";
}

// A host that can't lend its parameters: else every exchange were made twice.
TEST_F(BoardClientTest, AHostThatAsksForCallsIsAskedLessAndLess) {
  host_->by_call = true;
  std::vector<int> left_out;
  for (int miss = 0; miss < 3; ++miss) {
    EXPECT_TRUE(exchange(0)->by_call);
    int tries = 0;
    while (!client_->isReady()) ++tries;
    left_out.push_back(tries);
  }
  EXPECT_EQ(left_out, (std::vector<int>{1, 3, 7}));
  host_->by_call = false;
  EXPECT_FALSE(exchange(1)->by_call);
  EXPECT_TRUE(client_->isReady());
}

TEST_F(BoardClientTest, WhenItGoesAnExchangeFailsAsOneWhoseConnectionBroke) {
  host_->answers = false;
  try {
    loop_.call([&] {
      auto promise = client_->exchange({});
      client_.reset();
      return promise;
    });
    FAIL() << "must throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  }
}

class SleepingBoardClientTest : public BoardClientTest {
 protected:
  SleepingBoardClientTest() : BoardClientTest(Duration{0}) {}
};

TEST_F(SleepingBoardClientTest, ALoopThatNeverPollsCalls) {
  EXPECT_FALSE(client_->isReady());
}

}  // namespace
}  // namespace dtf::wire
