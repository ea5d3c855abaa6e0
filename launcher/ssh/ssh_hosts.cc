#include "launcher/ssh/ssh_hosts.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <utility>

#include "common/base/check.h"
#include "common/base/checksum.h"
#include "common/base/file.h"
#include "common/cluster/address.h"
#include "common/yaml/error_at.h"
#include "launcher/slurm/srun_command.h"
#include "launcher/ssh/ssh_command.h"

namespace dtf::launcher {

namespace {

using Via = cluster::LaunchSpec::Via;

constexpr Duration kTurn = std::chrono::milliseconds(20);
// For hosts that are wrong in the same way to say so together.
constexpr Duration kMoreFailuresWithin = std::chrono::seconds(2);
constexpr Duration kEndWithin = std::chrono::seconds(5);
constexpr size_t kHostsShown = 8;
// Of connections: a launcher that writes its log files says nothing for a moment.
constexpr double kHeartbeatSecondsMin = 0.5;
constexpr double kLeaseSecondsMin = 3;

// The host of each task, as the first of those that are spelt differently has it.
std::vector<std::string> hostsOfTasks(const cluster::JobSpec& job) {
  std::map<std::string, std::string> known;
  std::vector<std::string> hosts;
  for (const TaskId id : allTasks(job.cluster)) {
    const std::string& host = job.cluster.tasks(id.job)[id.index].address.host;
    hosts.push_back(known.try_emplace(cluster::hostKey(host), host).first->second);
  }
  return hosts;
}

std::vector<std::string> inOrder(const std::vector<std::string>& hosts) {
  std::vector<std::string> each;
  for (const std::string& host : hosts)
    if (std::find(each.begin(), each.end(), host) == each.end()) each.push_back(host);
  return each;
}

double heartbeatSeconds(const cluster::JobSpec& job) {
  return std::max(job.timeouts.heartbeat_seconds, kHeartbeatSecondsMin);
}

double leaseSeconds(const cluster::JobSpec& job) {
  return std::max(job.timeouts.lease_seconds, kLeaseSecondsMin);
}

// Of a node of Slurm: the folder was filled in where the job was placed there.
std::string agentIn(const cluster::SshSpec& ssh) {
  return ssh.binary_dir + "/dtf-agent";
}

std::vector<std::string> commandOf(const cluster::JobSpec& job, const std::string& host) {
  const cluster::SshSpec& ssh = job.launch.sshOf(host);
  if (job.launch.via == Via::kSlurm) return srunCommand(host, agentIn(ssh));
  return sshCommand(host, ssh, heartbeatSeconds(job), leaseSeconds(job));
}

// Of no other launch on any host.
std::string newLaunch() {
  std::array<uint64_t, 2> random{};
  DTF_CHECK(::getrandom(random.data(), sizeof random, 0) == sizeof random);
  return hexOf(random[0]) + hexOf(random[1]);
}

}  // namespace

std::vector<SshHostCommand> sshCommands(const cluster::JobSpec& job) {
  std::vector<SshHostCommand> commands;
  for (const std::string& host : inOrder(hostsOfTasks(job)))
    commands.push_back({host, commandOf(job, host)});
  return commands;
}

SshHosts::SshHosts(const cluster::JobSpec& job, const SentFiles& files, boost::asio::io_context& io,
                   const Clock& clock, TaskEvents& events)
    : io_(io),
      clock_(clock),
      events_(events),
      run_dir_(std::filesystem::absolute(job.run_dir).lexically_normal()),
      host_of_(hostsOfTasks(job)) {
  hosts_ = inOrder(host_of_);
  const std::vector<TaskId> tasks = allTasks(job.cluster);
  const std::string launch = newLaunch();
  for (const std::string& host : hosts_) {
    AgentLinkOptions options;
    options.host = host;
    options.command = commandOf(job, host);
    options.explain = [host, via = job.launch.via, ssh = job.launch.sshOf(host)](
                          const ExitStatus& status, std::string_view said) {
      return via == Via::kSlurm ? srunError(host, agentIn(ssh), status, said)
                                : sshError(host, ssh, status, said);
    };
    options.heartbeat_seconds = heartbeatSeconds(job);
    OpenOrder& open = options.open;
    open.job = job.job;
    open.launch = launch;
    open.run_dir = run_dir_;
    options.on_file = [this, host](const FilePiece& piece) { host_files_->take(host, piece); };
    options.kept_files = [this] { return run_files_->eventSizes(); };
    open.reachable = job.cluster.mayBeReached();
    open.lease_seconds = leaseSeconds(job);
    open.files = files;
    std::vector<TaskId> of_host;
    for (size_t task = 0; task < tasks.size(); ++task) {
      if (host_of_[task] != host) continue;
      open.tasks[tasks[task]] = job.cluster.tasks(tasks[task].job)[tasks[task].index];
      of_host.push_back(tasks[task]);
    }
    SentKeys& keys =
        keys_.try_emplace(host, job.cluster.keys, job.job, std::move(of_host)).first->second;
    open.files.merge(keys.read());
    orderJson(open);  // what can't be sent is refused before any host is asked
    links_[host] = std::make_unique<AgentLink>(io, clock, events, std::move(options));
  }
}

SshHosts::~SshHosts() {
  close();
}

AgentLink& SshHosts::linkOf(size_t task) const {
  return *links_.at(host_of_.at(task));
}

// Runs the loop, which others may stop, until it is done.
void SshHosts::awaitAll(const std::function<bool()>& done) {
  while (!done()) {
    if (io_.stopped()) io_.restart();
    io_.run_one_for(kTurn);
    look();
  }
}

ChosenAddresses SshHosts::listen(const TaskSpecs& tasks, bool /*reachable*/,
                                 const std::function<bool()>& give_up) {
  DTF_CHECK(tasks.size() == host_of_.size());
  run_files_.emplace(run_dir_);
  host_files_.emplace(*run_files_, [this](const std::string& text) { events_.onHostTold(text); });
  for (const auto& [host, link] : links_) link->connect(run_files_->mark());
  std::optional<TimePoint> failed;
  awaitAll([&] {
    bool all = true;
    for (const auto& [host, link] : links_) {
      if (link->failure() && !failed) failed = clock_.now();
      all = all && (link->listens() || link->failure());
    }
    return all || give_up() || (failed && clock_.now() > *failed + kMoreFailuresWithin);
  });
  throwFailures(tasks);
  if (!give_up()) warnOfOtherBuilds();
  ChosenAddresses chosen;
  for (const auto& [host, link] : links_)
    for (const auto& [id, port] : link->ports())
      chosen[id] = cluster::Address{tasks.at(id).address.host, port}.str();
  return chosen;
}

void SshHosts::throwFailures(const TaskSpecs& tasks) const {
  std::optional<std::pair<std::string, Error>> first;
  std::string text;
  size_t count = 0;
  for (const std::string& host : hosts_) {
    const std::optional<Error>& failure = links_.at(host)->failure();
    if (!failure) continue;
    if (!first) first = {host, *failure};
    if (++count <= kHostsShown) text += (text.empty() ? "" : "\n  ") + failure->message();
  }
  if (!first) return;
  if (count > kHostsShown) text += "\n  and " + std::to_string(count - kHostsShown) + " others";
  const auto there = std::find_if(tasks.begin(), tasks.end(), [&first](const auto& task) {
    return task.second.address.host == first->first;
  });
  DTF_CHECK_MSG(there != tasks.end(), first->first);
  throw yaml::ErrorAt(first->second.code(), there->second.mark, text);
}

// They say the same version, and may not understand each other all the same.
void SshHosts::warnOfOtherBuilds() const {
  const std::string& first = hosts_.front();
  for (const std::string& host : hosts_)
    if (links_.at(host)->programs() != links_.at(first)->programs())
      return events_.onHostTold("warning: " + host +
                                " has another build of dtf " DTF_VERSION " than " + first +
                                ": install the same programs on all hosts");
}

void SshHosts::start(size_t task, const TaskCommand& command) {
  linkOf(task).start(task, command);
}

void SshHosts::signal(size_t task, int signal) {
  linkOf(task).signal(task, signal);
}

void SshHosts::release(size_t task, TaskId id) {
  linkOf(task).release(task, id);
}

bool SshHosts::suspended(size_t task) const {
  return linkOf(task).suspended(task);
}

void SshHosts::look() {
  for (const auto& [host, link] : links_) link->look();
  sendRenewedKeys();
}

// The tasks read them for their next connections, as on one host.
void SshHosts::sendRenewedKeys() {
  for (auto& [host, keys] : keys_) {
    const auto link = links_.find(host);
    if (link == links_.end()) return;  // all are closed
    try {
      const SentFiles renewed = keys.renewed(clock_.now());
      if (renewed.empty()) continue;
      link->second->replaceFiles(renewed);
      events_.onHostTold("the renewed keys of its tasks were sent to " + host);
    } catch (const Error& error) {
      events_.onHostTold("warning: renewed keys are not sent to " + host + ": " + error.message());
    }
  }
}

// Whose agent does not answer will end by itself: its connection is closed.
void SshHosts::close() {
  if (std::exchange(closed_, true)) return;
  for (const auto& [host, link] : links_) link->askToEnd();
  const TimePoint deadline = clock_.now() + kEndWithin;
  awaitAll([&] {
    return clock_.now() >= deadline ||
           std::all_of(links_.begin(), links_.end(),
                       [](const auto& link) { return link.second->ended(); });
  });
  links_.clear();
}

}  // namespace dtf::launcher
