#include "launcher/ssh/ssh_probes.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "common/base/check.h"
#include "launcher/ssh/sent_keys.h"
#include "launcher/ssh/ssh_hosts.h"

namespace dtf::launcher {

namespace {

constexpr Duration kProbesTurn = std::chrono::milliseconds(20);
// For hosts that are wrong in the same way to say so together.
constexpr Duration kMoreProbesFailWithin = std::chrono::seconds(2);
constexpr Duration kProbesEndWithin = std::chrono::seconds(5);

}  // namespace

SshProbes::SshProbes(const cluster::JobSpec& job, const std::filesystem::path& agent,
                     boost::asio::io_context& io, const Clock& clock)
    : io_(io), clock_(clock) {
  const cluster::CopySpec& copy = job.launch.copy;
  if (copy.programs) copies_ = {readAgent(agent), nullptr, copy.dir, copy.max_gib << 30};
  const std::vector<TaskId> tasks = allTasks(job.cluster);
  const std::vector<std::string> host_of = hostsOfTasks(job);
  for (SshHostCommand& command : sshCommands(job)) {
    std::vector<TaskId> its;
    for (size_t i = 0; i < tasks.size(); ++i)
      if (host_of[i] == command.host) its.push_back(tasks[i]);
    DTF_CHECK_MSG(!its.empty(), command.host);
    Host host{command.host, job.cluster.tasks(its[0].job)[its[0].index].mark, newLaunch(),
              job.cluster.keys.empty() ? "" : its[0].name(), nullptr};
    AgentLinkOptions options = optionsOf(job, host, std::move(command.argv), {its[0]});
    host.link = std::make_unique<AgentLink>(io_, clock_, no_tasks_, std::move(options));
    hosts_.push_back(std::move(host));
  }
  DTF_CHECK(!hosts_.empty());
}

SshProbes::~SshProbes() {
  close();
}

AgentLinkOptions SshProbes::optionsOf(const cluster::JobSpec& job, const Host& host,
                                      std::vector<std::string> command, std::vector<TaskId> tasks) {
  AgentLinkOptions options;
  options.host = host.name;
  options.command = std::move(command);
  options.connect_within = kConnectWithin;
  options.explain = explainEnd(job.launch, host.name);
  options.on_measured = [this](const Measured& measured) {
    if (check_ != nullptr) check_->answered(measured);
  };
  ProbeOrder& probe = options.probe.emplace();
  probe.job = job.job;
  probe.host = host.name;
  probe.identity = host.identity;
  probe.reachable = job.cluster.mayBeReached();
  if (!job.cluster.keys.empty()) {
    probe.keys = std::filesystem::absolute(job.cluster.keys).lexically_normal();
    probe.task = host.task;
    probe.files = SentKeys(job.cluster.keys, job.job, std::move(tasks)).read();
  }
  orderJson(probe);  // what can't be sent is refused before any host is asked
  return options;
}

std::vector<ProbeSite> SshProbes::connect() {
  for (Host& host : hosts_) host.link->connect("", copies_);
  std::optional<TimePoint> failed;
  const auto is_settled = [](const Host& host) {
    return host.link->listens() || host.link->failure();
  };
  // Each link gives its host up by itself.
  while (!std::all_of(hosts_.begin(), hosts_.end(), is_settled)) {
    turn();
    const bool has_failed = std::any_of(hosts_.begin(), hosts_.end(), [](const Host& host) {
      return host.link->failure().has_value();
    });
    if (has_failed && !failed) failed = clock_.now();
    if (failed && clock_.now() > *failed + kMoreProbesFailWithin) break;
  }
  std::vector<HostFailure> failures;
  for (const Host& host : hosts_)
    if (host.link->failure()) failures.push_back({*host.link->failure(), host.mark});
  throwIfAny(failures);
  std::vector<ProbeSite> sites;
  for (Host& host : hosts_)
    sites.push_back({host.name, host.identity, host.task, host.link->probeAddresses(),
                     [link = host.link.get()](const Measure& order) { link->measure(order); }});
  return sites;
}

void SshProbes::turn() {
  if (io_.stopped()) io_.restart();
  io_.run_one_for(kProbesTurn);
  for (Host& host : hosts_) {
    host.link->look();
    if (check_ != nullptr && host.link->failure())
      check_->lost(host.name, host.link->failure()->message());
  }
}

// Whose agent does not answer will end by itself: its connection is closed.
void SshProbes::close() {
  check_ = nullptr;
  for (const Host& host : hosts_) host.link->askToEnd();
  const TimePoint deadline = clock_.now() + kProbesEndWithin;
  const auto has_ended = [](const Host& host) { return host.link->ended(); };
  while (!std::all_of(hosts_.begin(), hosts_.end(), has_ended) && clock_.now() < deadline) turn();
  hosts_.clear();
}

}  // namespace dtf::launcher
