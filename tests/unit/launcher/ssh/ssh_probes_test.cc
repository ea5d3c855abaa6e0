#include "launcher/ssh/ssh_probes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "common/net/asio.h"
#include "common/net/key_folder.h"
#include "launcher/network/network_check.h"
#include "tests/unit/launcher/job_fixture.h"

// A script in place of the ssh client runs the agent on this host. tests/e2e/network_test.cc has
// real hosts.

namespace dtf::launcher {

namespace fs = std::filesystem;

using ::testing::HasSubstr;

class SshProbesTest : public JobFixture {
 protected:
  SshProbesTest() : path_(std::getenv("PATH")) {
    fs::create_directory(folder_ / "bin");
    ::setenv("PATH", ((folder_ / "bin").string() + ":" + path_).c_str(), 1);
    ssh("exec " DTF_AGENT);
  }
  ~SshProbesTest() override { ::setenv("PATH", path_.c_str(), 1); }

  // Replaces the ssh client by this script, which finds the host in $host.
  void ssh(const std::string& script) {
    const fs::path file = folder_ / "bin" / "ssh";
    std::ofstream(file) << "#!/bin/sh\ncd " << folder_.string()
                        << "\nwhile [ \"$1\" != -- ]; do shift; done\nhost=$2\n"
                        << script << "\n";
    fs::permissions(file, fs::perms::owner_all);
  }

  // 127.0.0.1, 127.0.0.2, ...
  cluster::JobSpec hosts(size_t count) {
    cluster::JobSpec spec = job({"pause"}, std::vector<std::string>(count - 1, "pause"));
    spec.launch.via = cluster::LaunchSpec::Via::kSsh;
    size_t next = 1;
    for (auto* tasks : {&spec.cluster.ps, &spec.cluster.worker})
      for (cluster::TaskSpec& task : *tasks) {
        task.address.host = "127.0.0." + std::to_string(next++);
        task.mark = {"c.yaml", 3, 7};
      }
    return spec;
  }

  std::vector<NetworkRow> measure(
      const cluster::JobSpec& spec, const std::function<void()>& on_turn = [] {}) {
    SshProbes probes(spec, "", io_, clock_);
    NetworkCheck check(probes.connect(), clock_);
    probes.tell(check);
    return check.run(
        [&] {
          probes.turn();
          on_turn();
        },
        [](size_t) {});
  }

  Error errorOf(const cluster::JobSpec& spec) {
    try {
      measure(spec);
    } catch (const Error& error) {
      return error;
    }
    ADD_FAILURE() << "it was measured";
    return {ErrorCode::kInternal, ""};
  }

  const std::string path_;
  const SystemClock clock_;
  boost::asio::io_context io_{1};
};

TEST_F(SshProbesTest, AgentsMeasureEachOther) {
  const auto rows = measure(hosts(2));
  ASSERT_EQ(rows.size(), 2u);
  for (const NetworkRow& row : rows) {
    EXPECT_EQ(row.measured.problem, "");
    EXPECT_GT(row.measured.bytes_per_second, 1e6);
  }
  EXPECT_EQ(rows[0].from, "127.0.0.1");
  EXPECT_EQ(rows[0].address, "127.0.0.2");
  EXPECT_FALSE(fs::exists(folder_ / "run")) << "nothing of the job is touched";
}

TEST_F(SshProbesTest, WithKeysTheyDoItOverTls) {
  cluster::JobSpec spec = hosts(2);
  net::KeyFolder::create(folder_ / "keys", spec.job, {}, [](net::KeyFolder& made) {
    for (const char* task : {"ps/0", "worker/0"}) made.issue(task, "", {});
  });
  spec.cluster.keys = folder_ / "keys";
  for (const NetworkRow& row : measure(spec)) EXPECT_EQ(row.measured.problem, "");
  spec.cluster.keys = folder_ / "none";
  EXPECT_EQ(errorOf(spec).code(), ErrorCode::kBadData);
}

TEST_F(SshProbesTest, AHostThatCantBeUsedIsNamedAtItsPlaceInTheFile) {
  ssh("[ $host = 127.0.0.2 ] && { echo Permission denied >&2; exit 255; }; exec " DTF_AGENT);
  const Error error = errorOf(hosts(2));
  EXPECT_EQ(error.code(), ErrorCode::kPermission);
  EXPECT_THAT(error.message(),
              HasSubstr("c.yaml:3:7: error: 127.0.0.2: it does not let this user"));
}

TEST_F(SshProbesTest, AnAgentThatIsLostMeanwhileCostsItsPairsAlone) {
  ssh("echo $$ > pid.$host; exec " DTF_AGENT);
  bool killed = false;
  const auto rows = measure(hosts(3), [&] {
    if (std::exchange(killed, true)) return;
    pid_t pid = 0;
    std::ifstream(folder_ / "pid.127.0.0.3") >> pid;
    ASSERT_GT(pid, 1);
    ASSERT_EQ(::kill(pid, SIGKILL), 0);
  });
  ASSERT_EQ(rows.size(), 6u);
  for (const NetworkRow& row : rows) {
    const bool is_lost = row.from == "127.0.0.3" || row.to == "127.0.0.3";
    if (!is_lost) {
      EXPECT_EQ(row.measured.problem, "") << row.from << row.to;
    }
  }
  EXPECT_FALSE(rows[5].reached());
}

}  // namespace dtf::launcher
