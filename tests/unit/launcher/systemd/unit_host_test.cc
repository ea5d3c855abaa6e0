#include "launcher/systemd/unit_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "launcher/ssh/ssh_command.h"

// A shell, or this build's dtf-agent, in place of the ssh client. tests/hosts/far_units_test.py
// tests a host with systemd.

namespace dtf::launcher {
namespace {

using ::testing::HasSubstr;

MeetQuestion meeting(const std::string& unit) {
  return {"j", "a1", "/nonexistent/run", "/", {unit}, false};
}

class FarUnitHostTest : public ::testing::Test {
 protected:
  void reach(const std::vector<std::string>& command, const std::string& unit = "u") {
    AgentLinkOptions link;
    link.host = "two";
    link.command = command;
    link.explain = [](const ExitStatus& status, std::string_view said) {
      return sshError("two", {}, status, said);
    };
    host_.emplace(meeting(unit), std::move(link), io_, clock_, [](const FilePiece&) {});
  }

  // Returns the error of the call; kInternal: it got a reply.
  Error ask(Duration within = std::chrono::seconds(20)) {
    host_->ask(StatesQuestion{}, within);
    try {
      while (!host_->answered()) {
        if (io_.stopped()) io_.restart();
        io_.run_one_for(std::chrono::milliseconds(10));
      }
    } catch (const Error& error) {
      return error;
    }
    return {ErrorCode::kInternal, "answered"};
  }

  boost::asio::io_context io_{1};
  const SystemClock clock_{};
  std::optional<FarUnitHost> host_;
};

TEST_F(FarUnitHostTest, WhatAHostSaysBeginsWithItsName) {
  reach({DTF_AGENT}, "a/b");
  const Error error = ask();
  EXPECT_EQ(error.code(), ErrorCode::kBadData);
  EXPECT_EQ(error.message(), "two: 'a/b' is not a name of a unit");
  EXPECT_FALSE(host_->isAsked());
}

TEST_F(FarUnitHostTest, AHostThatCannotBeReachedIsNotTriedAtOnceAgain) {
  reach({"sh", "-c", "echo 'ssh: connect to host two port 22: No route to host' >&2; exit 255"});
  EXPECT_THAT(ask().message(), HasSubstr("two: it can't be reached"));
  EXPECT_EQ(host_->connection(), 0u);
  const TimePoint begin = clock_.now();
  const Error again = ask();
  EXPECT_EQ(again.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(again.message(), HasSubstr("two: it can't be reached"));
  EXPECT_LT(clock_.now() - begin, FarUnitHost::kAgainAfter);
}

TEST_F(FarUnitHostTest, ThePatienceForAnAnswerEnds) {
  reach({"sh", "-c", "echo '" + agentGreeting() + "'; exec sleep 60"});
  const Error late = ask(std::chrono::milliseconds(300));
  EXPECT_EQ(late.code(), ErrorCode::kDeadline);
  EXPECT_THAT(late.message(), HasSubstr("two: its dtf-agent has not answered in time"));
}

TEST_F(FarUnitHostTest, WhatCannotBeSentIsNoQuestion) {
  reach({"sh", "-c", "exec sleep 60"});
  EXPECT_THROW(host_->ask(ControlQuestion{{"\xe9"}}, std::chrono::seconds(1)), Error);
  EXPECT_FALSE(host_->isAsked());
  EXPECT_EQ(host_->connection(), 0u) << "for nothing";
}

TEST_F(FarUnitHostTest, AnotherVersionIsNamed) {
  reach({"sh", "-c", "echo dtf-agent 4 0.0.1; exec sleep 60"});
  const Error error = ask();
  EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
  EXPECT_THAT(error.message(), HasSubstr("two: it has dtf 0.0.1"));
}

TEST(LocalUnitHost, AnErrorIsTheAnswerAndTheHostCanBeAskedAgain) {
  LocalUnitHost host(meeting("a/b"), {});
  EXPECT_EQ(host.name(), "");
  for (int i = 0; i < 2; ++i) {
    host.ask(FreeQuestion{}, std::chrono::seconds(1));
    EXPECT_TRUE(host.isAsked());
    EXPECT_THROW(host.answered(), Error);
    EXPECT_FALSE(host.isAsked());
  }
}

}  // namespace
}  // namespace dtf::launcher
