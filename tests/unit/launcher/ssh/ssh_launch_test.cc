#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include "common/base/error.h"
#include "launcher/ssh/frames.h"
#include "launcher/ssh/messages.h"
#include "tests/unit/launcher/ssh/ssh_launch_fixture.h"

// Whole launches with a script in place of the ssh client, which runs the agent on this host. The
// tasks are scripts, too (fake_task.cc). tests/e2e/ssh_test.cc tests a real sshd.

namespace dtf::launcher {

namespace fs = std::filesystem;

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kServe = "on-term 0;ready;pause";
const std::string kPause = "ready;pause";

TEST_F(SshLaunch, EndsWithZeroWhenEveryTaskDoes) {
  const std::string done = (folder_ / "done").string();
  const cluster::JobSpec two =
      sshJob({"ready;await " + done},
             {"ready;listening;env DTF_SENT_FILES;"
              "notify {\"event\":\"progress\",\"step\":5,\"steps\":10};"
              "notify {\"event\":\"result\",\"outcome\":\"done\",\"global_step\":10};touch " +
              done});
  EXPECT_EQ(run(two), ExitStatus{}) << err();
  expectNoProcess(0);
  EXPECT_THAT(out(), HasSubstr("test-job: done"));
  EXPECT_EQ(summary()["global_step"], 10);
  EXPECT_THAT(log("worker-0.1.log"), HasSubstr("listening 1\nDTF_SENT_FILES=/"));
  for (const auto& entry : fs::directory_iterator(folder_ / "run"))
    EXPECT_THAT(entry.path().filename().string(), Not(HasSubstr(".sent-files")));
}

// The host's run directory is a disk of its own, on which its tasks have written.
TEST_F(SshLaunch, EventsOfAHostWithADiskOfItsOwnComeToTheLaunchers) {
  if (std::system("unshare -rm true") != 0)
    GTEST_SKIP() << "this user can't mount a disk of its own (unshare -rm)";
  ssh("export host; exec unshare -rm sh -c 'mount -t tmpfs none run && mkdir run/events &&"
      " echo of $host > run/events/$host.event && echo none > run/events.txt && exec ./dtf-agent'");
  EXPECT_EQ(run(sshJob({"ready"}, {"ready;notify {\"event\":\"result\",\"outcome\":\"done\"}"})),
            ExitStatus{})
      << err();
  for (const char* host : {"127.0.0.1", "127.0.0.2"}) {
    std::ifstream file(folder_ / "run/events" / (std::string(host) + ".event"));
    std::string line;
    std::getline(file, line);
    EXPECT_EQ(line, std::string("of ") + host);
  }
  for (const auto& entry : fs::directory_iterator(folder_ / "run")) {
    const std::string name = entry.path().filename();
    EXPECT_TRUE(name != "events.txt" && !name.starts_with(".launched-")) << name;
  }
}

// Hosts without any file of dtf: a shell, and a home each.
class SshCopies : public SshLaunch {
 protected:
  SshCopies() {
    ssh("mkdir -p home.$host; export HOME=$PWD/home.$host; unset XDG_CACHE_HOME; echo $3 >> words\n"
        "[ \"$3\" = sh ] || exit 1; exec sh");
    options_.files.programs = {
        {"psd", FAKE_TASK}, {"workerd", FAKE_TASK}, {"dtf-agent", DTF_AGENT}};
    std::ofstream(folder_ / "t.csv") << "a,b,y\n1,2,0\n";
  }
  cluster::JobSpec copyJob(const std::vector<std::string>& ps,
                           const std::vector<std::string>& workers) {
    cluster::JobSpec spec = sshJob(ps, workers);
    spec.launch.copy = {true, true, "", 1};
    spec.train.emplace();
    spec.train->data.train.mark = {"c.yaml", 8, 9};
    spec.train->data.train.format = cluster::DatasetSpec::Format::kCsv;
    spec.train->data.train.files = {folder_ / "t.csv"};
    return spec;
  }
  fs::path copies(const std::string& host) const {
    return folder_ / ("home." + host) / ".cache/dtf/copies";
  }
  static size_t filesIn(const fs::path& folder) {
    std::error_code none;
    const fs::directory_iterator all(folder, none);
    return static_cast<size_t>(std::distance(begin(all), end(all)));
  }
  static constexpr const char* kDone =
      "ready;env DTF_SENT_DATA;notify {\"event\":\"result\","
      "\"outcome\":\"done\"}";
};

TEST_F(SshCopies, HostsThatLackDtfAndDataAreBroughtThemOnce) {
  const cluster::JobSpec spec = copyJob({"ready"}, {kDone});
  EXPECT_EQ(run(spec), ExitStatus{}) << err();
  EXPECT_THAT(err(), HasSubstr("to 2 hosts in "));
  EXPECT_EQ(filesIn(copies("127.0.0.1") / "files"), 1u) << "psd and workerd are one file here";
  EXPECT_EQ(filesIn(copies("127.0.0.2") / "files"), 2u) << "its worker reads data";
  EXPECT_THAT(log("worker-0.1.log"), HasSubstr("DTF_SENT_DATA=" + copies("127.0.0.2").string()));
  EXPECT_EQ(run(spec), ExitStatus{}) << err();
  EXPECT_THAT(err(), HasSubstr("nothing to copy: every host has all files"));
  EXPECT_EQ(text(folder_ / "words"), "sh\nsh\nsh\nsh\n");
  expectNoProcess(5);
}

// A file larger than one message, in a store that was emptied.
TEST_F(SshCopies, ManyMiBComeWholeWithoutPrograms) {
  ssh("mkdir -p home.$host; export HOME=$PWD/home.$host; unset XDG_CACHE_HOME; exec ./dtf-agent");
  std::string table;
  for (int i = 0; table.size() < (size_t{40} << 20); ++i) table += std::to_string(i) + ",1,0\n";
  std::ofstream(folder_ / "t.csv") << table;
  cluster::JobSpec spec = copyJob({"ready"}, {kDone});
  spec.launch.copy.programs = false;
  EXPECT_EQ(run(spec), ExitStatus{}) << err();
  EXPECT_THAT(err(), HasSubstr("copied 40.0 MiB to 1 host in "));
  for (const auto& entry : fs::directory_iterator(copies("127.0.0.2") / "files"))
    EXPECT_EQ(text(entry.path()), table);
}

TEST_F(SshCopies, WhatIsInUseGoesWithTheJob) {
  const pid_t launcher = start(copyJob({kServe}, {kPause}));
  awaitError("tasks are ready");
  const auto agents = [this] {
    size_t count = 0;
    for (const auto& entry : fs::directory_iterator(copies("127.0.0.2")))
      if (entry.path().filename().string().starts_with(".use-")) ++count;
    return count;
  };
  EXPECT_EQ(agents(), 1u);
  ASSERT_GT(launcher, 1);
  ::kill(launcher, SIGINT);
  await(launcher);
  expectNoProcess(5);
  EXPECT_EQ(agents(), 0u);
}

TEST_F(SshCopies, WhatComesToNothingIsToldInWordsAtOnce) {
  struct Case {
    const char* script;
    ErrorCode code;
    const char* words;
  };
  const Case cases[] = {
      {"export HOME=/proc; unset XDG_CACHE_HOME; exec sh", ErrorCode::kCannotWrite,
       "127.0.0.1: the folder for copies there, ~/.cache/dtf/copies, can't be written"},
      {"echo 'Welcome'; exec sh", ErrorCode::kBadConfig, "127.0.0.1: it prints 'Welcome' before"},
      {"echo 'dtf-copy 1 Plan9 mips'; sleep 60", ErrorCode::kBadConfig,
       "127.0.0.1: it is Plan9 mips, and the programs here are for "},
      {"mkdir -p bin2; export PATH=$PWD/bin2; /bin/sh", ErrorCode::kBadConfig,
       "it lacks a program that copying needs"},
      {"echo 'sh: Connection refused' >&2; exit 255", ErrorCode::kUnavailable,
       "nothing listens at its ssh port"},
  };
  for (const Case& each : cases) {
    ssh(each.script);
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(run(copyJob({kServe}, {kServe})).code, exitCode(each.code)) << each.script << err();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(45)) << each.script;
    EXPECT_THAT(err(), HasSubstr(each.words)) << each.script;
    EXPECT_THAT(err(), HasSubstr("c.yaml:3:7: error: ")) << each.script;
    expectNoProcess(5);
  }
}

TEST_F(SshCopies, DataThatAreMoreThanTheBoundAreRefusedBeforeAnyHostIsAsked) {
  fs::resize_file(folder_ / "t.csv", (uint64_t{1} << 30) + 1);  // a sparse file
  EXPECT_EQ(run(copyJob({kServe}, {kServe})).code, exitCode(ErrorCode::kBadConfig)) << err();
  EXPECT_THAT(err(), HasSubstr("c.yaml:8:9: error: "));
  EXPECT_THAT(err(), HasSubstr("launch.copy.max_gib is 1"));
  EXPECT_FALSE(fs::exists(folder_ / "words"));
}

TEST_F(SshLaunch, AFailedTaskIsTheCauseAsElsewhere) {
  EXPECT_EQ(run(sshJob({kServe}, {"ready;notify {\"event\":\"failed\",\"code\":\"bad_data\","
                                  "\"message\":\"no such file\"};exit 65"}))
                .code,
            65)
      << err();
  EXPECT_THAT(err(), HasSubstr("worker/0 exited with code 65 (bad_data)\n"));
  EXPECT_THAT(err(), HasSubstr("\n  message    no such file\n"));
  expectNoProcess(0);
}

TEST_F(SshLaunch, SixtyFourTasksOnSixteenHostsStartTogether) {
  const std::vector<std::string> tasks(32, kServe);
  const auto spec = sshJob(tasks, tasks, 4);
  const pid_t launcher = start(spec);
  awaitError("all 64 tasks are ready");
  ASSERT_GT(launcher, 1);
  ::kill(launcher, SIGTERM);
  await(launcher);
  expectNoProcess(5);
}

TEST_F(SshLaunch, TasksThatAreLostWithTheirHostStartAgain) {
  const auto spec = sshJob({kServe}, {kPause, kPause});
  const pid_t launcher = start(spec);
  awaitError("tasks are ready");
  kill(lastPid("127.0.0.3"));
  awaitError("worker/1 was lost with its host, 127.0.0.3");
  awaitError("worker/1 is back");
  EXPECT_THAT(err(), HasSubstr("127.0.0.3: ssh was killed by SIGKILL"));
  EXPECT_THAT(log("worker-1.2.log"), Not(HasSubstr("lost")));
  EXPECT_THAT(log("worker-1.1.log"), HasSubstr("the connection is lost"));
  ASSERT_GT(launcher, 1);
  ::kill(launcher, SIGINT);
  await(launcher);
  expectNoProcess(5);
}

TEST_F(SshLaunch, AHostThatStaysAwayIsNamedAtTheEnd) {
  auto spec = sshJob({kServe}, {kPause, kPause});
  spec.launch.restarts.max = 2;
  const pid_t launcher = start(spec);
  awaitError("tasks are ready");
  const pid_t agent = lastPid("127.0.0.2");
  ssh("echo 'ssh: connect to host gpu1 port 22: Connection refused' >&2; exit 255");
  kill(agent);
  EXPECT_EQ(await(launcher).code, exitCode(ErrorCode::kUnavailable)) << err();
  EXPECT_THAT(err(), Not(HasSubstr("someone sent SIGKILL")));
  EXPECT_THAT(err(), HasSubstr("127.0.0.2: nothing listens at its ssh port"));
  EXPECT_THAT(err(), HasSubstr("test-job failed: worker/0 was lost with its host, 127.0.0.2"));
  expectNoProcess(5);
}

TEST_F(SshLaunch, NobodyOutlivesAKilledLauncher) {
  const pid_t launcher = start(sshJob({"ignore-term;fork;ready;pause"}, {"fork;" + kPause}));
  awaitError("tasks are ready");
  kill(launcher);
  await(launcher);
  expectNoProcess(10);
}

struct Wrong {
  const char* script;
  ErrorCode code;
  const char* words;
};

TEST_F(SshLaunch, AHostThatIsOfNoUseIsToldInWordsAtOnce) {
  const Wrong cases[] = {
      {"echo 'dtf-agent 1 9.9.9'; sleep 60", ErrorCode::kBadConfig, "127.0.0.1: it has dtf 9.9.9"},
      {"echo 'Welcome to this host'; exec ./dtf-agent", ErrorCode::kBadConfig,
       "127.0.0.1: it prints 'Welcome to this host' before dtf-agent starts"},
      {"echo 'sh: 1: dtf-agent: not found' >&2; exit 127", ErrorCode::kBadConfig,
       "there is no dtf-agent"},
      {"echo 'Host key verification failed.' >&2; exit 255", ErrorCode::kPermission,
       "its host key is not known here"},
      {"head -c 1000 /dev/zero; sleep 60", ErrorCode::kUnavailable,
       "127.0.0.1: a first line of more"},
      {"./dtf-agent --version >&2", ErrorCode::kUnavailable, "its dtf-agent exited with code 0"},
  };
  for (const Wrong& each : cases) {
    ssh(each.script);
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(run(sshJob({kServe}, {kServe})).code, exitCode(each.code)) << each.script << err();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10)) << each.script;
    EXPECT_THAT(err(), HasSubstr("c.yaml:3:7: error: ")) << each.script;
    EXPECT_THAT(err(), HasSubstr(each.words)) << each.script;
    expectNoProcess(5);
  }
}

// Line breaks stay; control characters for a terminal are removed.
TEST_F(SshLaunch, WordsOfAHostReachTheTerminalHarmlessAndWithItsName) {
  std::ofstream(folder_ / "answer", std::ios::binary)
      << agentGreeting() << "\n"
      << messageFrame(
             reportJson(FailedReport{{}, ErrorCode::kUnavailable, "\x1b[2Jgone\nfor ever"}));
  ssh("cat answer; exec sleep 60");
  EXPECT_EQ(run(sshJob({kServe}, {})).code, exitCode(ErrorCode::kUnavailable)) << err();
  EXPECT_THAT(err(), HasSubstr("c.yaml:3:7: error: 127.0.0.1: ?[2Jgone\nfor ever"));
  std::ofstream(folder_ / "answer", std::ios::binary) << agentGreeting() << "\n"
                                                      << messageFrame("{\"report\":\"\x1b[2J\"}");
  EXPECT_NE(run(sshJob({kServe}, {})).code, 0);
  EXPECT_THAT(err(), HasSubstr("error: 127.0.0.1: "));
  EXPECT_THAT(err(), Not(HasSubstr("\x1b")));
}

TEST_F(SshLaunch, AnotherBuildOnAHostIsAWarning) {
  fs::create_directory(folder_ / "other");
  fs::copy_file(folder_ / "dtf-agent", folder_ / "other" / "dtf-agent");
  for (const char* name : {"psd", "workerd"}) {
    fs::copy_file(FAKE_TASK, folder_ / "other" / name);
    std::ofstream(folder_ / "other" / name, std::ios::app | std::ios::binary) << "another build";
  }
  ssh("[ $host = 127.0.0.1 ] || cd other; exec ./dtf-agent");
  EXPECT_EQ(run(sshJob({"ready"}, {"ready"})), ExitStatus{}) << err();
  EXPECT_THAT(err(), HasSubstr("warning: 127.0.0.2 has another build of dtf"));
}

TEST_F(SshLaunch, AClientHasNoTerminalToAskAt) {
  ssh("echo $$ > pids.$host\n"
      "sed 's/.*) //' /proc/$$/stat | cut -d ' ' -f 4 > session; exec ./dtf-agent");
  EXPECT_EQ(run(sshJob({"ready"}, {})), ExitStatus{}) << err();
  EXPECT_EQ(text(folder_ / "session"), text(folder_ / "pids.127.0.0.1")) << "it leads its own";
}

TEST_F(SshLaunch, AStopWhileHostsAreAwaitedIsHeard) {
  ssh("touch called; exec sleep 60");
  options_.on_held = [this] {
    std::ofstream(folder_ / "held").flush();
    return std::string();
  };
  const pid_t launcher = start(sshJob({kServe}, {kServe}));
  awaitFile(folder_ / "called");
  EXPECT_TRUE(fs::exists(folder_ / "held")) << "it can be found, to be stopped";
  ASSERT_GT(launcher, 1);
  ::kill(launcher, SIGINT);
  EXPECT_EQ(await(launcher).code, 130) << err();
  expectNoProcess(5);
}

// It listens, and the others don't yet: no task runs that could be lost with it.
TEST_F(SshLaunch, AHostThatIsLostBeforeTheOthersListenEndsTheLaunch) {
  ssh("[ $host = 127.0.0.1 ] || exec sleep 60\necho $$ > pids.$host\n./dtf-agent | tee said");
  const pid_t launcher = start(sshJob({kServe}, {kServe}));
  awaitText(folder_ / "said", "listening");
  kill(lastPid("127.0.0.1"));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(await(launcher).code, exitCode(ErrorCode::kUnavailable)) << err();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(15));
  EXPECT_THAT(err(), HasSubstr("c.yaml:3:7: error: 127.0.0.1: ssh was killed by SIGKILL"));
  expectNoProcess(5);
}

TEST_F(SshLaunch, AFileThatIsNotUtf8IsRefusedBeforeAnyHostIsAsked) {
  ssh("touch called; exec ./dtf-agent");
  options_.files.texts[folder_ / "cluster.yaml"] = "job: '\xFF'\n";
  EXPECT_EQ(run(sshJob({kServe}, {kServe})).code, exitCode(ErrorCode::kBadConfig)) << err();
  EXPECT_THAT(err(), HasSubstr("bytes that are not UTF-8, in a file of the job"));
  EXPECT_FALSE(fs::exists(folder_ / "called"));
}

TEST_F(SshLaunch, WithoutAClientThereIsAWordAboutThat) {
  fs::remove(folder_ / "bin" / "ssh");
  ::setenv("PATH", (folder_ / "bin").c_str(), 1);
  EXPECT_EQ(run(sshJob({kServe}, {kServe})).code, exitCode(ErrorCode::kBadConfig)) << err();
  EXPECT_THAT(err(), HasSubstr("cannot run ssh"));
  EXPECT_THAT(err(), HasSubstr("install it, or add its folder to PATH"));
  EXPECT_THAT(err(), Not(HasSubstr("--bin-dir")));
}

}  // namespace dtf::launcher
