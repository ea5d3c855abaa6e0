#pragma once

// Tasks on other hosts: one connection a host, for all tasks that the cluster file has there. What
// leads to a host's agent is an ssh client, or a step of the Slurm allocation.

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/cluster/spec.h"
#include "launcher/ssh/agent_link.h"
#include "launcher/ssh/host_files.h"
#include "launcher/ssh/model_fetch.h"
#include "launcher/ssh/sent_keys.h"
#include "launcher/task_host.h"

namespace dtf::launcher {

// The host of each task, as the first of those that are spelt differently has it.
std::vector<std::string> hostsOfTasks(const cluster::JobSpec& job);

// A name of one launch alone, on whatever host.
std::string newLaunch();

// The hosts of `job`, in the order of its tasks, and what leads to the agent of each.
std::vector<SshHostCommand> sshCommands(const cluster::JobSpec& job);

// What is made of the end of the command that led to the agent of `host`, and of its last words.
std::function<Error(const ExitStatus&, std::string_view)> explainEnd(
    const cluster::LaunchSpec& launch, const std::string& host);

// dtf-agent of this host, for hosts that have none.
// Errors: those of readFile().
std::shared_ptr<const AgentProgram> readAgent(const std::filesystem::path& file);

// A host that can't be used, and where the cluster file names it.
struct HostFailure {
  Error error;
  yaml::Mark mark;
};

// Nothing where there is none.
// Errors: the first one's, at its place in the file, with what the others say.
void throwIfAny(const std::vector<HostFailure>& failures);

// Owns: the connections.
// Borrows: `job`, `io`, `clock`, `events` (must outlive this).
// Threads: loop-thread only.
// Blocks: listen(), running the loop, until every host has answered or some have failed; close(),
// until every agent has ended its tasks, some seconds at most.
class SshHosts : public TaskHost {
 public:
  SshHosts(const cluster::JobSpec& job, const JobFiles& files, boost::asio::io_context& io,
           const Clock& clock, TaskEvents& events);
  ~SshHosts() override;

  ChosenAddresses listen(const TaskSpecs& tasks, bool reachable,
                         const std::function<bool()>& give_up) override;
  void start(size_t task, const TaskCommand& command) override;
  void signal(size_t task, int signal) override;
  void release(size_t task, TaskId id) override;
  bool suspended(size_t task) const override;
  void look() override;
  bool fetchModel(uint64_t step, const std::function<bool()>& give_up) override;
  void dropSnapshots() override { drops_snapshots_ = true; }
  void close() override;

 private:
  using Done = std::function<bool()>;
  void awaitAll(const Done& done);
  void connect(const Done& give_up);
  void awaitHosts(const Done& give_up);
  std::map<std::string, HostCopies> findCopies(const Done& give_up);
  void turn(Duration longest);
  void sendRenewedKeys();
  ModelFetchOptions modelOptions(uint64_t step) const;
  void awaitModel(const Done& give_up);
  void onFetched(const std::string& host, const std::function<void(ModelFetch&)>& take);
  void throwFailures(const TaskSpecs& tasks) const;
  void warnOfOtherBuilds() const;
  AgentLink& linkOf(size_t task) const;

  const cluster::JobSpec& job_;
  const std::map<std::string, std::filesystem::path> programs_;  // of this host, to be copied
  boost::asio::io_context& io_;
  const Clock& clock_;
  TaskEvents& events_;
  const std::filesystem::path run_dir_;
  std::optional<RunFilesWriter> run_files_;  // from listen() on: the run directory is there
  std::optional<HostFiles> host_files_;      // likewise
  std::vector<std::string> hosts_;           // in order
  std::map<std::string, std::unique_ptr<AgentLink>> links_;
  std::map<std::string, SentKeys> keys_;  // by host
  std::unique_ptr<ModelFetch> model_;     // from fetchModel() on, unless that has failed
  std::optional<Error> model_failure_;    // of model_, which is not gone on with
  std::vector<std::string> host_of_;      // each task's
  bool closed_ = false;
  bool drops_snapshots_ = false;
};

}  // namespace dtf::launcher
