#pragma once

// A real sshd of the test's own: unprivileged means only, its own port, host key, authorized key
// and client configuration. 127.0.0.1, 127.0.0.2, ... are the hosts.

#include <memory>
#include <string>
#include <vector>

#include "tests/e2e/cluster_fixture.h"

namespace dtf::testing {

class SshTest : public ClusterTest {
 protected:
  SshTest();
  ~SshTest() override;

  // Skips the test, saying so, where there is no sshd.
  void SetUp() override;
  void startSshd();

  static constexpr int kNoPs = -1;  // the workers host the parameters
  // A job with a worker on each of `hosts` hosts, and a ps on each of the first `ps`; 0: of all.
  std::string sshJob(int hosts, int steps, int ps = 0, const std::string& top_more = "");
  // dtf-launch in a folder of its own.
  Process start(const std::string& file);
  // Processes of a program that have this test's folder and `words` in their command line.
  std::vector<pid_t> pidsOf(const std::string& program, const std::string& words = "") const;
  pid_t awaitPid(const std::string& program, const std::string& words = "") const;
  static pid_t parentOf(pid_t pid);
  static void kill9(pid_t pid);
  // No task, agent, client or guard of theirs within five seconds; sshd itself goes on.
  void expectNoTask() const;
  void keygen(const std::string& file) const;

  std::string agent_folder_;  // has dtf-agent, psd and workerd
  int port_ = 0;
  std::string sshd_more_;  // lines of its configuration
  std::unique_ptr<Process> sshd_;
};

}  // namespace dtf::testing
