#pragma once

// Whole launches with a script in place of the ssh client, which runs the agent on this host. The
// tasks are scripts, too (fake_task.cc). tests/e2e/ssh_test.cc tests a real sshd.

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/unit/launcher/job_fixture.h"

namespace dtf::launcher {

class SshLaunch : public JobFixture {
 protected:
  SshLaunch();
  ~SshLaunch() override {
    ::unsetenv("DTF_TEST_FOLDER");
    ::setenv("PATH", path_.c_str(), 1);
  }

  // Replaces the ssh client by this script, which finds the host in $host.
  void ssh(const std::string& script) {
    const std::filesystem::path file = folder_ / "bin" / "ssh";
    std::ofstream(file) << "#!/bin/sh\ncd " << folder_.string()
                        << "\nwhile [ \"$1\" != -- ]; do shift; done\nhost=$2\n"
                        << script << "\n";
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  }

  // A job with every task on a host of its own: 127.0.0.1, 127.0.0.2, ...
  cluster::JobSpec sshJob(const std::vector<std::string>& ps,
                          const std::vector<std::string>& workers, int each = 1) {
    cluster::JobSpec spec = job(ps, workers);
    spec.launch.via = cluster::LaunchSpec::Via::kSsh;
    int count = 0;
    for (auto* tasks : {&spec.cluster.ps, &spec.cluster.worker})
      for (cluster::TaskSpec& task : *tasks) {
        task.address.host = "127.0.0." + std::to_string(1 + count++ / each);
        task.mark = {"c.yaml", 3, 7};
      }
    return spec;
  }

  pid_t lastPid(const std::string& host) const {
    std::ifstream file(folder_ / ("pids." + host));
    pid_t pid = 0, last = 0;
    while (file >> pid) last = pid;
    return last;
  }

  void kill(pid_t pid) {
    ASSERT_GT(pid, 1);
    ASSERT_EQ(::kill(pid, SIGKILL), 0);
  }

  const std::string path_;
  std::error_code no_link_;
};

}  // namespace dtf::launcher
