#include "common/host/board_service.h"

#include <gtest/gtest.h>

#include <vector>

#include "common/base/error.h"
#include "common/net/reactor.h"
#include "tests/support/mapped_page.h"

namespace dtf::host {
namespace {

using dtf::testing::mapped;

// A worker and a shard that answers when the test says so.
class BoardServiceTest : public ::testing::Test, public BoardExchanges {
 protected:
  BoardServiceTest() {
    loop_.call([this] {
      service_ = std::make_unique<BoardService>(loop_, *this, mapped(worker_.memory()));
      worker_.setReplies(mapped(*service_->replies()));
      loop_.port().removePolled(*service_);  // the test calls it
    });
  }
  ~BoardServiceTest() override {
    loop_.call([this] { service_.reset(); });
  }

  void push(const wire::BoardRequest& request, replication::PushCallback reply) override {
    if (request.gradient_key == 0) throw Error(ErrorCode::kBadData, "no such gradient");
    steps_.push_back(request.exchange.step);
    replies_.push_back(std::move(reply));
  }
  wire::BoardReply replyOf(const replication::PushReply& reply) override {
    ++named_;
    return {.state = reply.state, .key = 5};
  }

  net::IoThread loop_{"board", std::chrono::milliseconds(1)};
  wire::RequestBoard worker_;
  std::unique_ptr<BoardService> service_;
  std::vector<uint64_t> steps_;
  std::vector<replication::PushCallback> replies_;
  int named_ = 0;  // replies with parameters
};

TEST_F(BoardServiceTest, ARequestIsPushedAndAnswered) {
  EXPECT_FALSE(service_->poll());
  EXPECT_TRUE(worker_.isPolled());
  worker_.post({.exchange = {.step = 3}, .gradient_key = 1});
  EXPECT_TRUE(service_->poll());
  EXPECT_EQ(steps_, std::vector<uint64_t>{3});
  EXPECT_FALSE(service_->poll());
  replies_[0](replication::PushReply{{.next_step = 4}, nullptr});
  EXPECT_EQ(worker_.takeReply()->state.next_step, 4u);
  EXPECT_EQ(worker_.takeReply()->key, 5u);
}

TEST_F(BoardServiceTest, BeforeItSleepsItLooksOnceMore) {
  service_->poll();
  worker_.post({.exchange = {.step = 3}, .gradient_key = 1});
  EXPECT_TRUE(service_->beforeSleep());
  EXPECT_EQ(steps_.size(), 1u);
  EXPECT_FALSE(worker_.isPolled());
}

TEST_F(BoardServiceTest, AnErrorIsHadByACall) {
  worker_.post({.exchange = {.step = 3}});
  service_->poll();
  EXPECT_TRUE(worker_.takeReply()->by_call) << "the request's";
  worker_.post({.exchange = {.step = 3}, .gradient_key = 1});
  service_->poll();
  replies_[0](Error(ErrorCode::kUnavailable, "the shard's"));
  EXPECT_TRUE(worker_.takeReply()->by_call);
  EXPECT_EQ(named_, 0);
}

TEST_F(BoardServiceTest, WhatACallHasRepeatedLendsNothing) {
  worker_.post({.exchange = {.step = 3}, .gradient_key = 1});
  service_->poll();
  service_->skip();
  replies_[0](replication::PushReply{});
  EXPECT_FALSE(worker_.takeReply());
  EXPECT_EQ(named_, 0);
}

TEST_F(BoardServiceTest, AnAnswerAfterTheSessionGoesNowhere) {
  worker_.post({.exchange = {.step = 3}, .gradient_key = 1});
  service_->poll();
  loop_.call([this] { service_.reset(); });
  replies_[0](replication::PushReply{});
  EXPECT_FALSE(worker_.takeReply());
}

}  // namespace
}  // namespace dtf::host
