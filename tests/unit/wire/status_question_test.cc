#include "common/wire/status_question.h"

#include <gtest/gtest.h>

#include "tests/support/loopback.h"
#include "tests/unit/wire/fake_ps_host.h"

namespace dtf::wire {
namespace {

TEST(StatusQuestion, BringsTheWordsOfThoseWhoAnswerInTime) {
  fake::FakePsHost ps;
  ps.with([](fake::FakePs& answering) { answering.status = R"({"global_step": 7})"; });
  const Fd silent = testing::listenOnLoopback();  // nobody accepts there
  const cluster::Address there{"127.0.0.1", ps.port()};
  const cluster::Address nobody{"127.0.0.1", testing::portOf(silent)};
  const auto answers = askStatus(
      {{{JobKind::kPs, 0}, there}, {{JobKind::kPs, 1}, nobody}, {{JobKind::kWorker, 0}, there}},
      std::chrono::seconds(3), net::Credentials());
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(answers[0], R"({"global_step": 7})");
  EXPECT_EQ(answers[1], std::nullopt);
  EXPECT_EQ(answers[2], std::nullopt) << "a ps is no worker";
}

TEST(StatusQuestion, OfNobodyIsNoAnswer) {
  EXPECT_TRUE(askStatus({}, std::chrono::milliseconds(1), net::Credentials()).empty());
}

}  // namespace
}  // namespace dtf::wire
