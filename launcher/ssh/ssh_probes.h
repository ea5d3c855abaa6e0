#pragma once

// The hosts of a job over ssh, as those between which the network is measured.

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/cluster/spec.h"
#include "launcher/network/network_check.h"
#include "launcher/ssh/agent_link.h"

namespace dtf::launcher {

// Owns: the connections.
// Borrows: `io`, `clock` (must outlive this).
// Threads: loop-thread only.
// Blocks: connect(), running the loop, until every host has answered or some have failed, for
// kConnectWithin at most; close(), some seconds at most.
class SshProbes {
 public:
  static constexpr Duration kConnectWithin = std::chrono::seconds(30);

  // `agent`: dtf-agent of this host, used where the hosts may have none (launch.copy.programs).
  // Errors: those of readFile(), of `agent`.
  SshProbes(const cluster::JobSpec& job, const std::filesystem::path& agent,
            boost::asio::io_context& io, const Clock& clock);
  ~SshProbes();

  // Errors: in compiler form, those of hosts that can't be used.
  std::vector<ProbeSite> connect();
  // What hosts answer from now on goes to `check`, which is borrowed.
  void tell(NetworkCheck& check) { check_ = &check; }
  // Waits a little, and notices who is lost.
  void turn();
  void close();

 private:
  struct Host {
    std::string name;
    yaml::Mark mark;  // of its first task
    std::string identity;
    std::string task;  // whose key it has; empty: there are none
    std::unique_ptr<AgentLink> link;
  };
  AgentLinkOptions optionsOf(const cluster::JobSpec& job, const Host& host,
                             std::vector<std::string> command, std::vector<TaskId> tasks);

  boost::asio::io_context& io_;
  const Clock& clock_;
  NetworkCheck* check_ = nullptr;
  NoTaskEvents no_tasks_;
  HostCopies copies_;        // of no data: nothing is trained
  std::vector<Host> hosts_;  // in the file's order
};

}  // namespace dtf::launcher
