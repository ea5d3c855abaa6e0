#include "launcher/ssh/agent.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

#include "common/checkpoint/snapshot_folder.h"
#include "tests/unit/launcher/ssh/agent_fixture.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

using ::testing::HasSubstr;

TEST_F(AgentTest, TasksRunTheCopiesAndReadThem) {
  startAgent();
  const std::string script = "#!/bin/sh\nexec " + std::string(FAKE_TASK) + " \"$@\"\n";
  const auto digest = [](const std::string& text) {
    Sha256 sha256;
    sha256.update(text);
    return sha256.finish();
  };
  OfferOrder offer{(folder_ / "copies").string(), 1 << 20, {}, {}, true};
  offer.files = {{digest(script), script.size(), "psd", ""},
                 {digest(script), script.size(), "workerd", ""},
                 {digest("a,b\n"), 4, "", "/home/me/t.csv"}};
  order(offer);
  EXPECT_EQ(nextReport<LackingReport>().files, (std::vector<size_t>{0, 2}));
  say(copyFrame(script.substr(0, 5)));
  say(copyFrame(script.substr(5) + "a,b\n"));
  EXPECT_EQ(nextReport<StoredReport>().bytes, script.size() + 4);
  order(openOrder());
  nextReport<ListeningReport>();
  order(startOrder("argv;env DTF_SENT_DATA;env DTF_STARTED_IN"));
  nextReport<ExitedReport>();
  EXPECT_THAT(output_, HasSubstr("DTF_STARTED_IN=/no/such/folder"));
  const size_t at = output_.find("DTF_SENT_DATA=") + 14;
  const fs::path data = output_.substr(at, output_.find('\n', at) - at);
  EXPECT_EQ(data.filename(), "data");
  EXPECT_EQ(text(data / "home/me/t.csv"), "a,b\n");
  order(EndOrder{});
  EXPECT_EQ(exitOfAgent(), 0);
  EXPECT_FALSE(fs::exists(data)) << "only the copies themselves are left";
}

TEST_F(AgentTest, ACopyThatComesToNothingIsToldAndNothingRuns) {
  startAgent();
  OfferOrder offer{"/proc/copies", 1 << 20, {}, {}, true};
  order(offer);
  for (;;) {
    const auto [kind, payload] = next();
    ASSERT_EQ(kind, FrameKind::kMessage);
    const AgentReport report = parseReport(payload);
    if (const auto* failed = std::get_if<FailedReport>(&report)) {
      EXPECT_THAT(failed->message, HasSubstr("/proc/copies"));
      break;
    }
  }
  order(openOrder());
  order(EndOrder{});
  EXPECT_EQ(next().first, std::nullopt) << "it listens for nobody";
  EXPECT_EQ(exitOfAgent(), 0);
}

TEST_F(AgentTest, RunsATaskAndTellsWhatBecomesOfIt) {
  startAgent();
  order(openOrder());
  EXPECT_GT(nextReport<ListeningReport>().ports.at(kPs), 0);
  order(startOrder("listening;env DTF_SENT_FILES;ready;part the end;exit 65"));
  EXPECT_EQ(nextReport<StartedReport>().task, 5u);
  const ExitedReport exited = nextReport<ExitedReport>();
  EXPECT_EQ(exited.task, 5u);
  EXPECT_EQ(exited.status, (ExitStatus{65, 0}));
  EXPECT_THAT(output_,
              HasSubstr("listening 1\nDTF_SENT_FILES=" + (folder_ / "run/.sent-files-").string()));
  EXPECT_THAT(output_, HasSubstr("the end"));
  EXPECT_EQ(notices_, "{\"event\":\"ready\"}\n");
  order(EndOrder{});
  EXPECT_EQ(exitOfAgent(), 0);
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "run"))
    ADD_FAILURE() << entry.path() << " is left";
}

TEST_F(AgentTest, AFileThatWasSentIsReplacedWhileItsTasksRun) {
  startAgent();
  order(openOrder());
  nextReport<ListeningReport>();
  order(startOrder("ready;pause"));
  nextReport<StartedReport>();
  order(ReplaceOrder{{{"/no/such/folder/c.yaml", "job: y\n"}}});
  order(PingOrder{});
  nextReport<AliveReport>();
  std::string there;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "run"))
    if (entry.path().filename().string().starts_with(".sent-files-"))
      there = text(entry.path() / "no/such/folder/c.yaml");
  EXPECT_EQ(there, "job: y\n");
  order(ReplaceOrder{{{"/no/such/folder/other", "x"}}});
  EXPECT_NE(exitOfAgent(), 0) << "it writes what it was never sent";
}

// The other launch could come from a third host, and would begin by removing the snapshots.
TEST_F(AgentTest, AnotherLaunchInTheRunDirectoryIsRefusedAndRemovesNothing) {
  startAgent();
  order(openOrder());
  nextReport<ListeningReport>();
  const pid_t first = std::exchange(agent_, -1);
  const Fd to_first = std::move(to_), from_first = std::move(from_);
  const std::filesystem::path snapshots =
      checkpoint::sharedMemoryPlace("agent-test", folder_ / "run").folder;
  std::filesystem::create_directories(snapshots);
  std::filesystem::permissions(snapshots, std::filesystem::perms::owner_all);
  std::ofstream(snapshots / "snapshot") << "x";
  startAgent();
  OpenOrder other = openOrder();
  other.launch = "b2";
  order(other);
  const AgentReport report = parseReport(next().second);
  ASSERT_TRUE(std::holds_alternative<FailedReport>(report));
  EXPECT_THAT(std::get<FailedReport>(report).message, HasSubstr("another launch"));
  order(EndOrder{});
  EXPECT_EQ(exitOfAgent(), 0);
  EXPECT_TRUE(std::filesystem::exists(snapshots / "snapshot"));
  std::filesystem::remove_all(snapshots);
  startAgent();
  order(openOrder());
  EXPECT_GT(nextReport<ListeningReport>().ports.at(kPs), 0) << "an agent of the first launch";
  ::kill(first, SIGKILL);
  ::waitpid(first, nullptr, 0);
}

TEST_F(AgentTest, SnapshotsStayUnlessTheJobIsOver) {
  const std::filesystem::path snapshots =
      checkpoint::sharedMemoryPlace("agent-test", folder_ / "run").folder;
  std::filesystem::create_directories(snapshots);
  std::filesystem::permissions(snapshots, std::filesystem::perms::owner_all);
  for (const bool is_over : {false, true}) {
    std::ofstream(snapshots / "snapshot") << "x";
    startAgent();
    OpenOrder open = openOrder();
    open.drops_snapshots = false;
    order(open);
    nextReport<ListeningReport>();
    order(EndOrder{is_over});
    EXPECT_EQ(exitOfAgent(), 0);
    EXPECT_EQ(std::filesystem::exists(snapshots), !is_over);
  }
}

TEST_F(AgentTest, NoTaskOutlivesTheConnection) {
  for (const bool orderly : {false, true}) {
    startAgent();
    order(openOrder());
    nextReport<ListeningReport>();
    order(startOrder("ignore-term;fork;ready;pause"));
    nextReport<StartedReport>();
    EXPECT_GE(processes(), 1u);
    if (orderly) order(EndOrder{});
    to_.reset();
    EXPECT_EQ(exitOfAgent(), orderly ? 0 : exitCode(ErrorCode::kUnavailable));
    expectNoProcess(5);
  }
}

TEST_F(AgentTest, NoTaskOutlivesAKilledAgent) {
  startAgent();
  order(openOrder());
  nextReport<ListeningReport>();
  order(startOrder("ignore-term;fork;ready;pause"));
  nextReport<StartedReport>();
  ASSERT_GT(agent_, 1);
  ::kill(agent_, SIGKILL);
  EXPECT_EQ(exitOfAgent(), 128 + SIGKILL);
  expectNoProcess(5);
}

TEST_F(AgentTest, ALauncherThatSaysNothingForTheLeaseHasGone) {
  startAgent();
  OpenOrder open = openOrder();
  open.lease_seconds = 0.5;
  order(open);
  nextReport<ListeningReport>();
  order(startOrder("ready;pause"));
  nextReport<StartedReport>();
  EXPECT_EQ(exitOfAgent(), exitCode(ErrorCode::kUnavailable));
  EXPECT_THAT(text(folder_ / "said"), HasSubstr("no message from dtf-launch for 0.5 s"));
  expectNoProcess(5);
}

TEST_F(AgentTest, ALeaseStartsWhenAnOrderIsObeyed) {
  open_takes_ms_ = 2500;
  startAgent();
  OpenOrder open = openOrder();
  open.lease_seconds = 2;
  order(open);
  nextReport<ListeningReport>();
  order(PingOrder{});
  nextReport<AliveReport>();
  order(EndOrder{});
  EXPECT_EQ(exitOfAgent(), 0);
}

// Its tasks write more than the connection takes: the agent still ends with its lease.
TEST_F(AgentTest, OutputThatWaitsIsNoReasonToStay) {
  startAgent();
  OpenOrder open = openOrder();
  open.lease_seconds = 3;
  order(open);
  nextReport<ListeningReport>();
  const auto begin = std::chrono::steady_clock::now();
  order(startOrder("ignore-term;ready;flood 2000000;pause"));  // 40 MB
  EXPECT_EQ(exitOfAgent(), exitCode(ErrorCode::kUnavailable));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
  expectNoProcess(5);
}

TEST_F(AgentTest, ASignOfLifeTellsWhoIsSuspended) {
  startAgent();
  order(openOrder());
  nextReport<ListeningReport>();
  order(startOrder("ready;pause"));
  nextReport<StartedReport>();
  order(PingOrder{});
  EXPECT_TRUE(nextReport<AliveReport>().suspended.empty());
  order(SendSignalOrder{5, SIGSTOP});
  std::vector<size_t> suspended;
  for (int i = 0; i < 1000 && suspended.empty(); ++i) {  // the kernel needs a moment
    order(PingOrder{});
    suspended = nextReport<AliveReport>().suspended;
  }
  EXPECT_EQ(suspended, (std::vector<size_t>{5}));
  order(SendSignalOrder{5, SIGKILL});
  EXPECT_EQ(nextReport<ExitedReport>().status.signal, SIGKILL);
}

TEST_F(AgentTest, WhatIsNoOrderEndsIt) {
  const std::string huge("\xFF\xFF\xFF\x7F\x01", 5);
  const StartOrder early = startOrder("pause");
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.0\r\n\r\n"), huge, messageFrame("{}"), messageFrame("[[[["),
        messageFrame(orderJson(PingOrder{})), messageFrame(orderJson(early)),
        bytesFrame(FrameKind::kOutput, 1, "x")}) {
    startAgent();
    say(bytes);
    EXPECT_NE(exitOfAgent(), 0) << bytes;
    expectNoProcess(5);
  }
}

// It measures itself here, as any other host.
TEST_F(AgentTest, MeasuresWhatItIsToldTo) {
  startAgent();
  order(ProbeOrder{"agent-test", "127.0.0.1", "a1", false, {}, {}, {}});
  const auto addresses = nextReport<ProbingReport>().addresses;
  ASSERT_EQ(addresses.size(), 1u);
  EXPECT_EQ(addresses[0].address, "127.0.0.1");
  order(MeasureOrder{{3, {"127.0.0.1", addresses[0].port}, "a1", ""}});
  const Measured measured = nextReport<MeasuredReport>().measured;
  EXPECT_EQ(measured.number, 3u);
  EXPECT_EQ(measured.problem, "");
  EXPECT_GT(measured.bytes_per_second, 0);
  order(MeasureOrder{{4, {"127.0.0.1", addresses[0].port}, "b2", ""}});
  EXPECT_THAT(nextReport<MeasuredReport>().measured.problem, HasSubstr("another machine"));
  order(EndOrder{});
  EXPECT_EQ(exitOfAgent(), 0);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run"));
}

TEST_F(AgentTest, OneThatMeasuresRunsNoTasks) {
  for (const AgentOrder& wrong : std::initializer_list<AgentOrder>{
           openOrder(), startOrder("pause"), SendSignalOrder{5, SIGKILL}, ReleaseOrder{5, kPs},
           ReplaceOrder{}, ProbeOrder{"j", "127.0.0.1", "a1", false, {}, {}, {}}}) {
    startAgent();
    order(ProbeOrder{"j", "127.0.0.1", "a1", false, {}, {}, {}});
    nextReport<ProbingReport>();
    order(wrong);
    EXPECT_EQ(exitOfAgent(), exitCode(ErrorCode::kBadData)) << wrong.index();
  }
  startAgent();
  order(openOrder());
  nextReport<ListeningReport>();
  order(MeasureOrder{{1, {"127.0.0.1", 9}, "a1", ""}});
  EXPECT_EQ(exitOfAgent(), exitCode(ErrorCode::kBadData)) << "and the other way round";
}

TEST_F(AgentTest, WhereTasksMayNotListenNothingIsMeasured) {
  startAgent();
  order(ProbeOrder{"j", "0.0.0.0", "a1", false, {}, {}, {}});
  const AgentReport report = parseReport(next().second);
  ASSERT_TRUE(std::holds_alternative<FailedReport>(report));
  EXPECT_EQ(std::get<FailedReport>(report).code, ErrorCode::kBadConfig);
}

TEST_F(AgentTest, AFailureIsToldInWords) {
  startAgent();
  OpenOrder open = openOrder();
  open.tasks[kPs].address = {"192.0.2.1", 0};
  open.reachable = true;
  order(open);
  const AgentReport report = parseReport(next().second);
  ASSERT_TRUE(std::holds_alternative<FailedReport>(report));
  EXPECT_EQ(std::get<FailedReport>(report).code, ErrorCode::kBadConfig);
  EXPECT_THAT(std::get<FailedReport>(report).message,
              HasSubstr("'192.0.2.1' of ps/0 is not this host"));
}

TEST_F(AgentTest, AFolderThatCantBeMadeIsToldInWords) {
  startAgent();
  OpenOrder open = openOrder();
  open.run_dir = "/proc/no-such-folder/run";
  order(open);
  const AgentReport report = parseReport(next().second);
  ASSERT_TRUE(std::holds_alternative<FailedReport>(report));
  EXPECT_THAT(std::get<FailedReport>(report).message, HasSubstr("/proc/no-such-folder"));
  to_.reset();
  EXPECT_EQ(exitOfAgent(), exitCode(ErrorCode::kUnavailable)) << "it was the launcher's to end it";
}

TEST_F(AgentTest, AProgramThatIsMissingIsNoEndOfTheConnection) {
  startAgent();
  order(openOrder());
  nextReport<ListeningReport>();
  std::filesystem::remove(folder_ / "psd");
  order(startOrder("pause"));
  const AgentReport report = parseReport(next().second);
  ASSERT_TRUE(std::holds_alternative<FailedReport>(report));
  EXPECT_EQ(std::get<FailedReport>(report).task, 5u);
  EXPECT_THAT(std::get<FailedReport>(report).message, HasSubstr("cannot start ps/0"));
  order(EndOrder{});
  EXPECT_EQ(exitOfAgent(), 0);
}

}  // namespace dtf::launcher
