#include "launcher/network/measured_hosts.h"

#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <set>
#include <utility>

#include "common/base/print.h"
#include "common/net/credentials.h"
#include "common/net/tls_keys.h"
#include "common/yaml/error_at.h"
#include "launcher/binaries.h"
#include "launcher/listen_sockets.h"
#include "launcher/network/network_probe.h"
#include "launcher/output.h"
#include "launcher/ssh/ssh_hosts.h"
#include "launcher/ssh/ssh_probes.h"

namespace dtf::launcher {

namespace {

constexpr Duration kLocalTurn = std::chrono::milliseconds(20);
constexpr Duration kWordsWithin = std::chrono::seconds(1);

// Of a cluster without keys.
net::Credentials plainCredentials(const cluster::ClusterSpec& cluster) {
  if (cluster.insecure) return net::Credentials::insecure();
  return cluster.keys.empty() ? net::Credentials::ownUser() : net::Credentials();
}

// The hosts of a job that runs here: all are this one, under the names that the file has for it.
// Owns: the probes.
// Threads: one; the probes answer on theirs.
// Blocks: turn(), for a moment.
class LocalProbes {
 public:
  // Errors: kBadConfig at a task of another host.
  explicit LocalProbes(const cluster::JobSpec& job);
  ~LocalProbes() { probes_.clear(); }

  std::vector<ProbeSite> connect() { return std::move(sites_); }
  void tell(NetworkCheck& check) { check_ = &check; }
  void turn() {
    io_.restart();
    io_.run_one_for(kLocalTurn);
  }

 private:
  void add(const cluster::JobSpec& job, const std::string& host, TaskId task);

  net::asio::io_context io_{1};
  // Answers come from other threads.
  net::asio::executor_work_guard<net::asio::io_context::executor_type> work_{io_.get_executor()};
  const net::Credentials plain_;  // where the job has no keys
  NetworkCheck* check_ = nullptr;
  std::vector<ProbeSite> sites_;
  std::vector<std::unique_ptr<NetworkProbe>> probes_;
};

LocalProbes::LocalProbes(const cluster::JobSpec& job) : plain_(plainCredentials(job.cluster)) {
  const std::vector<TaskId> tasks = allTasks(job.cluster);
  const std::vector<std::string> hosts = hostsOfTasks(job);
  std::set<std::string> seen;
  for (size_t i = 0; i < tasks.size(); ++i)
    if (seen.insert(hosts[i]).second) add(job, hosts[i], tasks[i]);
}

void LocalProbes::add(const cluster::JobSpec& job, const std::string& host, TaskId task) {
  if (!isThisHost(host))
    throw yaml::ErrorAt(ErrorCode::kBadConfig, job.cluster.tasks(task.job)[task.index].mark,
                        host +
                            " is not this host: the network is measured over ssh; add 'launch: "
                            "{via: ssh}' to the file, or --set launch.via=ssh");
  NetworkProbe::Options options{host, newLaunch(), job.cluster.mayBeReached()};
  std::string certified;
  if (!job.cluster.keys.empty()) {
    certified = task.name();
    options.credentials = net::Credentials::ofKeys(
        std::make_shared<net::TlsKeys>(job.cluster.keys, certified, job.job));
  } else {
    options.credentials = plain_;
  }
  const std::string identity = options.identity;
  probes_.push_back(std::make_unique<NetworkProbe>(std::move(options)));
  NetworkProbe* probe = probes_.back().get();
  const auto measure = [this, probe](const Measure& order) {
    probe->measure(order, [this](const Measured& measured) {
      net::asio::post(io_, [this, measured] { check_->answered(measured); });
    });
  };
  sites_.push_back({host, identity, certified, probe->addresses(), measure});
}

// `probes`: SshProbes or LocalProbes.
template <class Probes>
std::vector<NetworkRow> measureAll(Probes& probes, const Clock& clock, NetworkScope scope,
                                   bool quiet) {
  NetworkCheck check(probes.connect(), clock, scope);
  probes.tell(check);
  const auto progress = [&](size_t done) {
    if (quiet) return;
    printBounded(
        STDERR_FILENO,
        fmt::format("dtf-launch: network: {} of {} measured\n", done, check.measurements()),
        kWordsWithin);
  };
  return check.run([&] { probes.turn(); }, progress);
}

}  // namespace

std::vector<NetworkRow> measureHosts(const cluster::JobSpec& job, const Options& options,
                                     const Origin& origin, NetworkScope scope, bool quiet) {
  const SystemClock clock;
  if (!job.launch.byAgents()) {
    LocalProbes probes(job);
    return measureAll(probes, clock, scope, quiet);
  }
  net::asio::io_context io(1);
  const bool copies = job.launch.copy.programs;
  SshProbes probes(job, copies ? findAgent(options.bin_dir, origin.own_folder) : "", io, clock);
  return measureAll(probes, clock, scope, quiet);
}

}  // namespace dtf::launcher
