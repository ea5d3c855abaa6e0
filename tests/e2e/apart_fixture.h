#pragma once

// Jobs over a real sshd. The hosts share no disk with each other or with the launcher: each mounts
// its own run directory.

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/e2e/ssh_fixture.h"

namespace dtf::testing {

constexpr std::chrono::seconds kPatienceApart{90};

class SshApartTest : public SshTest {
 protected:
  void SetUp() override {
    SshTest::SetUp();
    if (IsSkipped()) return;
    if (runProcess({"unshare", "-rm", "true"}).exit_code != 0)
      GTEST_SKIP() << "this user can't mount a disk of its own (unshare -rm)";
    useAgents("");
  }

  // `first`: shell commands that each host runs before its agent; $3 is the host's address.
  void useAgents(const std::string& first) {
    // A wrapper in place of the agent, because the agent looks for the daemons beside itself.
    const std::string agent = folder_.path() + "/bin/dtf-agent";
    agent_folder_ = folder_.path() + "/apart";
    std::filesystem::create_directories(agent_folder_);
    folder_.write("apart/dtf-agent",
                  "#!/bin/sh\n"
                  "set -- $SSH_CONNECTION\n" +
                      first + "disk=" + folder_.path() +
                      "/disks/$3\n"
                      "mkdir -p $disk\n"
                      "exec unshare -rm sh -c \"mount --bind $disk " +
                      folder_.path() + "/runs/job && exec " + agent + "\"\n");
    std::filesystem::permissions(agent_folder_ + "/dtf-agent", std::filesystem::perms::owner_all);
  }

  std::string job(int steps, const std::string& train_more) {
    const std::string file = sshJob(2, steps);
    std::ofstream(folder_.path() + "/train.yaml", std::ios::app)
        << "replication: {mode: sync}\noptimizer: {adam: {learning_rate: 0.001}}\n"
        << train_more;
    return file;
  }
  std::filesystem::path disk(int host) const {
    return folder_.path() + "/disks/127.0.0." + std::to_string(host);
  }
  static size_t filesIn(const std::filesystem::path& folder) {
    std::error_code none;
    const std::filesystem::directory_iterator all(folder, none);
    return static_cast<size_t>(std::distance(begin(all), end(all)));
  }
};

}  // namespace dtf::testing
