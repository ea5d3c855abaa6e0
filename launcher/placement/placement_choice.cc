#include "launcher/placement/placement_choice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/cluster/address.h"
#include "common/graph/device_name.h"
#include "common/replication/replication_rules.h"
#include "common/train/initial_values.h"
#include "common/yaml/error_at.h"
#include "launcher/launch_plan.h"
#include "launcher/network/network_report.h"
#include "launcher/ssh/ssh_hosts.h"

namespace dtf::launcher {

namespace {

using cluster::PlacementSpec;
using Strategy = PlacementSpec::Strategy;
using Mode = cluster::ReplicationSpec::Mode;

constexpr double kRowIdBytes = 4;
constexpr double kLeastShare = 1e-3;  // a host of a shard holds something

std::string noPs(const cluster::JobSpec& job) {
  return job.cluster.ps.empty() ? "the cluster has none" : "";
}

// A job whose file has ps keeps what depends on them.
std::string noWorkersBesidePs(const cluster::JobSpec& job) {
  if (job.cluster.worker.size() < 2)
    return "one worker alone would exchange nothing: leave 'ps' out";
  if (job.train->replication.mode != Mode::kSync)
    return "only with 'mode: sync', as workers compute while others need their shards";
  if (!job.train->placement.pins.empty()) return "'pins' name ps";
  if (job.durability.kind == cluster::Durability::kSnapshot)
    return "'durability: snapshot' is of ps";
  return "";
}

std::string noHybrid(const cluster::JobSpec& job) {
  if (job.cluster.ps.empty()) return "the cluster has no ps";
  const model::ModelGraph model = train::trainingGraphOf(*job.train);
  const bool has_tables = std::ranges::any_of(
      model.variables, [](const auto& variable) { return variable.indices.has_value(); });
  return has_tables ? noWorkersBesidePs(job) : "the model has no sparse variable";
}

std::string noWorkers(const cluster::JobSpec& job) {
  return job.cluster.ps.empty() ? "" : noWorkersBesidePs(job);
}

struct OptionRule {
  const char* name;
  Strategy strategy;
  bool uses_ps;  // false: the ps are not started
  std::string (*whyNot)(const cluster::JobSpec& job);
};
// In the order of preference.
constexpr OptionRule kOptionRules[] = {{"ps", Strategy::kEven, true, noPs},
                                       {"hybrid", Strategy::kHybrid, true, noHybrid},
                                       {"workers", Strategy::kEven, false, noWorkers}};

// Where tasks are, as indices of links. A link has the spelling of the first task on its host,
// which an option without ps may not have: hosts are compared by hostKey().
class HostIndex {
 public:
  HostIndex(const cluster::JobSpec& job, const std::vector<HostLink>& links) {
    for (const TaskId task : allTasks(job.cluster)) {
      const std::string& host = job.cluster.tasks(task.job)[task.index].address.host;
      const auto link = std::ranges::find_if(links, [&host](const HostLink& each) {
        return cluster::hostKey(each.host) == cluster::hostKey(host);
      });
      DTF_CHECK_MSG(link != links.end(), host);
      of_[task] = static_cast<size_t>(link - links.begin());
    }
  }
  size_t of(TaskId task) const { return of_.at(task); }

 private:
  std::map<TaskId, size_t> of_;
};

std::vector<size_t> workerHosts(const cluster::JobSpec& job, const HostIndex& index) {
  std::vector<size_t> hosts;
  for (uint32_t i = 0; i < job.cluster.worker.size(); ++i)
    hosts.push_back(index.of({JobKind::kWorker, i}));
  return hosts;
}

std::vector<size_t> shardHosts(const cluster::JobSpec& job, const HostIndex& index) {
  std::vector<size_t> hosts;
  const ShardHosts shards = job.cluster.shardHosts();
  for (uint32_t i = 0; i < train::shardsOf(job.cluster); ++i)
    hosts.push_back(index.of(shards.of(i)));
  return hosts;
}

// Adds the bytes of one part of a variable. A replica receives the mean gradient of a step as
// float32: of a table, the rows of the gradients of all workers, `gradients` in number.
void addPart(const graph::PlacedVariable& variable, const graph::VariablePart& part,
             double dense_factor, uint32_t gradients, ShardBytes& shard) {
  const double bytes = static_cast<double>(part.count) * sizeof(float);
  if (!variable.gradient_rows_max) {
    shard.pushed += bytes * dense_factor;
    shard.answered += bytes * dense_factor;
    shard.backed_up += bytes;
    return;
  }
  // The rows of a batch, spread over the parts.
  const double share = bytes / static_cast<double>(variable.bytes());
  const auto rows = static_cast<double>(variable.shape.dim(0));
  const double row_bytes = static_cast<double>(variable.bytes()) / rows;
  const auto batch_rows = static_cast<double>(*variable.gradient_rows_max);
  shard.pushed += share * batch_rows * (row_bytes + kRowIdBytes);
  shard.answered += share * batch_rows * row_bytes;
  shard.backed_up += share * std::min(rows, batch_rows * gradients) * (row_bytes + kRowIdBytes);
}

StepBytes bytesOf(const cluster::JobSpec& job, const HostIndex& index) {
  const cluster::TrainSpec& train = *job.train;
  const model::ModelGraph model = train::trainingGraphOf(train);
  const graph::Placement placed =
      train::placeModel(model.graph, train::placementOf(train), job.cluster, kChief.index);
  StepBytes step{workerHosts(job, index), {}};
  for (const size_t host : shardHosts(job, index)) step.shards.push_back({host});
  const double dense_factor = replication::transferShare(train.replication);
  const auto workers = static_cast<uint32_t>(job.cluster.worker.size());
  const uint32_t gradients =
      replication::gradientsPerStep(replication::completeReplication(train.replication, workers));
  for (const graph::PlacedVariable& variable : placed.variables)
    for (const graph::VariablePart& part : variable.parts)
      addPart(variable, part, dense_factor, gradients, step.shards.at(part.ps_task));
  const bool is_replica = job.durability.kind == cluster::Durability::kReplica;
  if (!is_replica || step.shards.size() < 2)
    for (ShardBytes& shard : step.shards) shard.backed_up = 0;
  return step;
}

// Returns the pins by the tasks that host the shards, as a file names them.
Json pinsOf(const PlacementSpec& placement, const ShardHosts& hosts) {
  Json pins = Json::object();
  for (const auto& [variable, shard] : placement.pins)
    pins[variable] = hosts.of(graph::DeviceName::parse(shard).task.value()).device();
  return pins;
}

// `--set` with the whole of `placement`, which replaces the word auto. The shares are the file's.
std::string placementOverride(const PlacementSpec& placement, const ShardHosts& hosts) {
  Json json = {{"strategy", placement.strategy == Strategy::kHybrid ? "hybrid" : "even"}};
  if (!placement.shares.empty()) json["shares"] = placement.shares;
  if (!placement.pins.empty()) json["pins"] = pinsOf(placement, hosts);
  if (placement.partition_min_bytes == 0)
    json["partition"] = "none";
  else if (placement.partition_min_bytes != PlacementSpec().partition_min_bytes)
    json["partition"] = Json{{"min_bytes", placement.partition_min_bytes}};
  return "train.placement=" + json.dump();
}

// Returns `--set` with the settings of the hosts that have workers; nullopt: all have. The file
// refuses settings of a host without a task.
std::optional<std::string> hostsWithoutPs(const cluster::JobSpec& job) {
  Json list = Json::array();
  for (const auto& [key, ssh] : job.launch.hosts) {
    const bool has_worker =
        std::ranges::any_of(job.cluster.worker, [&key = key](const cluster::TaskSpec& worker) {
          return cluster::hostKey(worker.address.host) == key;
        });
    if (!has_worker) continue;
    Json host = {{"host", key}};
    if (!ssh.user.empty()) host["user"] = ssh.user;
    if (ssh.port != 0) host["port"] = ssh.port;
    if (!ssh.identity.empty()) host["identity"] = ssh.identity.string();
    if (!ssh.binary_dir.empty()) host["binary_dir"] = ssh.binary_dir;
    list.push_back(std::move(host));
  }
  if (list.size() == job.launch.hosts.size()) return std::nullopt;
  return "launch.hosts=" + list.dump();
}

// Four digits are more than a measurement has.
std::vector<double> rounded(std::vector<double> shares) {
  constexpr double kDigits = 1e4;
  for (double& share : shares) share = std::max(std::round(share * kDigits) / kDigits, kLeastShare);
  return shares;
}

// Shards that hold other variables than the rest, those of a hybrid placement on the ps, have
// shares of their own.
std::vector<double> sharesOf(const cluster::JobSpec& job, const HostIndex& index,
                             const std::vector<HostLink>& links) {
  const std::vector<size_t> workers = workerHosts(job, index), shards = shardHosts(job, index);
  const auto begin = shards.begin() + job.train->placement.sparse_shards;
  std::vector<double> shares;
  for (const std::vector<size_t>& part :
       {std::vector<size_t>(shards.begin(), begin), std::vector<size_t>(begin, shards.end())}) {
    if (part.empty()) continue;
    const std::vector<double> its = sharesByLink(workers, part, links);
    shares.insert(shares.end(), its.begin(), its.end());
  }
  return shares;
}

// Returns the shares of shards in the order of a file, which is that of their hosts.
std::vector<double> inOrderOfHosts(std::vector<double> shares, const ShardHosts& hosts) {
  DTF_CHECK(hosts.leader < shares.size());
  std::swap(shares[0], shares[hosts.leader]);
  return shares;
}

// Equal shares first; others only where they are clearly better.
void setCost(PlacementOption& option, cluster::JobSpec& variant,
             const std::vector<HostLink>& links) {
  const HostIndex index(variant, links);
  PlacementSpec& placement = variant.train->placement;
  DTF_CHECK(placement.shares.empty());
  option.cost = costOf(bytesOf(variant, index), links);
  placement.shares = rounded(sharesOf(variant, index, links));
  const ExchangeCost weighted = costOf(bytesOf(variant, index), links);
  if (weighted.seconds * kPlacementBetterBy < option.cost.seconds) {
    option.cost = weighted;
    option.shares = inOrderOfHosts(placement.shares, variant.cluster.shardHosts());
  } else {
    placement.shares.clear();
  }
}

// The cost is that of the job as its tasks will read it, with the overrides.
PlacementOption optionOf(const OptionRule& rule, const cluster::JobSpec& job,
                         const std::vector<HostLink>& links, const JobReader& read) {
  PlacementOption option{rule.name, rule.whyNot(job), {}, {}, {}};
  PlacementSpec placement = job.train->placement;
  const std::vector<std::string>& among = placement.among;
  if (!among.empty() && std::ranges::find(among, option.name) == among.end())
    option.why_not = "'among' leaves it out";
  if (!option.why_not.empty()) return option;
  placement.strategy = rule.strategy;
  if (!rule.uses_ps && !job.cluster.ps.empty()) {
    option.overrides.emplace_back("cluster.ps=[]");
    if (std::optional<std::string> hosts = hostsWithoutPs(job))
      option.overrides.push_back(std::move(*hosts));
  }
  // A job with pins keeps its hosts.
  option.overrides.push_back(placementOverride(placement, job.cluster.shardHosts()));
  ReadJob variant = read(option.overrides);
  if (!variant.job) {
    DTF_CHECK(!variant.why_not.empty());
    return {rule.name, "the file with it has a mistake: " + variant.why_not, {}, {}, {}};
  }
  DTF_CHECK(variant.job->train.has_value());
  setCost(option, *variant.job, links);
  placement.shares = option.shares;
  option.overrides.back() = placementOverride(placement, job.cluster.shardHosts());
  return option;
}

std::string megabytes(double bytes) {
  return fmt::format("{:.3g} MB", bytes / 1e6);
}

std::string busiestText(const ExchangeCost& cost) {
  if (cost.busiest.empty()) return "all tasks are on one host";
  return fmt::format("{} sends {} and receives {}", cost.busiest, megabytes(cost.busiest_sends),
                     megabytes(cost.busiest_receives));
}

std::string linksText(const std::vector<HostLink>& links) {
  size_t width = 4;
  for (const HostLink& link : links) width = std::max(width, link.host.size());
  std::string text = fmt::format("{:<{}}  {:>8}  {:>8}  {:>13}\n", "host", width, "out MB/s",
                                 "in MB/s", "round trip us");
  for (const HostLink& link : links)
    text += fmt::format("{:<{}}  {:>8}  {:>8}  {:>13.0f}\n", link.host, width, rateText(link.out),
                        rateText(link.in), link.round_trip * 1e6);
  return text;
}

std::string sharesText(const PlacementOption& option) {
  return option.shares.empty() ? "" : fmt::format("shares: [{}]", fmt::join(option.shares, ", "));
}

}  // namespace

std::vector<std::string> linkedHosts(const cluster::JobSpec& job) {
  std::vector<std::string> hosts;
  for (const std::string& host : hostsOfTasks(job))
    if (std::ranges::find(hosts, host) == hosts.end()) hosts.push_back(host);
  return hosts;
}

PlacementChoice choosePlacement(const cluster::JobSpec& job, const std::vector<HostLink>& links,
                                const JobReader& read) {
  DTF_CHECK(job.train.has_value() && read != nullptr);
  PlacementChoice choice{links, {}, 0};
  std::optional<size_t> best;
  std::string reasons;
  for (const OptionRule& rule : kOptionRules) {
    const PlacementOption& option = choice.options.emplace_back(optionOf(rule, job, links, read));
    if (!option.why_not.empty()) {
      reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", option.name, option.why_not);
      continue;
    }
    const bool is_better =
        !best || option.cost.seconds * kPlacementBetterBy < choice.options[*best].cost.seconds;
    if (is_better) best = choice.options.size() - 1;
  }
  if (!best)
    throw yaml::ErrorAt(ErrorCode::kBadConfig, job.train->placement.strategy_mark,
                        "'placement: auto' has nothing to choose from: " + reasons);
  choice.chosen = *best;
  DTF_CHECK(!choice.option().overrides.empty());
  return choice;
}

std::string choiceText(const PlacementChoice& choice) {
  const PlacementOption& option = choice.option();
  std::string text = fmt::format("{}, {:.3g} ms an exchange predicted: {}", option.name,
                                 option.cost.seconds * 1e3, busiestText(option.cost));
  if (!option.shares.empty()) text += "; " + sharesText(option);
  for (const PlacementOption& other : choice.options) {
    if (&other == &option) continue;
    text += other.why_not.empty()
                ? fmt::format("; {} {:.3g} ms", other.name, other.cost.seconds * 1e3)
                : fmt::format("; not {}: {}", other.name, other.why_not);
  }
  return text;
}

std::string choiceTable(const PlacementChoice& choice) {
  std::string text = choice.links.size() == 1 ? "" : linksText(choice.links) + "\n";
  text += "parameters on\n";
  for (size_t i = 0; i < choice.options.size(); ++i) {
    const PlacementOption& option = choice.options[i];
    text += fmt::format("  {:<8}", option.name);
    if (!option.why_not.empty()) {
      text += "not possible: " + option.why_not + "\n";
      continue;
    }
    text += fmt::format("{:>8.3g} ms an exchange: {}{}{}\n", option.cost.seconds * 1e3,
                        busiestText(option.cost), option.shares.empty() ? "" : "; ",
                        sharesText(option));
  }
  text += "\nthe placement of 'auto':\n";
  for (const std::string& change : choice.option().overrides) text += "  --set '" + change + "'\n";
  return text;
}

Json choiceJson(const PlacementChoice& choice) {
  Json links = Json::array(), options = Json::array();
  for (const HostLink& link : choice.links)
    links.push_back(Json{{"host", link.host},
                         {"out_bytes_per_second", link.out},
                         {"in_bytes_per_second", link.in},
                         {"round_trip_us", link.round_trip * 1e6}});
  for (const PlacementOption& option : choice.options) {
    Json json = {{"name", option.name}};
    if (!option.why_not.empty()) {
      json["why_not"] = option.why_not;
    } else {
      json["predicted_ms"] = option.cost.seconds * 1e3;
      json["busiest"] = option.cost.busiest;
      json["shares"] = option.shares;
      json["set"] = option.overrides;
    }
    options.push_back(std::move(json));
  }
  return {{"chosen", choice.option().name}, {"links", links}, {"options", options}};
}

}  // namespace dtf::launcher
