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

// The job with one of the options, as its tasks will read it.
struct Variant {
  cluster::JobSpec job;
  std::vector<std::string> overrides;  // beside that of the placement
};

Variant cutByBytes(const cluster::JobSpec& job) {
  Variant variant{job, {}};
  variant.job.train->placement.strategy = Strategy::kEven;
  return variant;
}

Variant onPs(const cluster::JobSpec& job) {
  return cutByBytes(job);
}

// Tables on the ps, the other variables on the workers.
Variant hybrid(const cluster::JobSpec& job) {
  Variant variant{job, {}};
  variant.job.train->placement.strategy = Strategy::kHybrid;
  variant.job.train->placement.sparse_shards = static_cast<uint32_t>(job.cluster.ps.size());
  variant.job.cluster.hybrid = true;
  variant.job.durability = {cluster::Durability::kReplica};
  return variant;
}

// Without its ps, which are not started. The default of `durability` is replica then.
Variant onWorkers(const cluster::JobSpec& job) {
  Variant variant = cutByBytes(job);
  if (job.cluster.ps.empty()) return variant;
  variant.overrides.emplace_back("cluster.ps=[]");
  variant.job.cluster.ps.clear();
  variant.job.durability = {cluster::Durability::kReplica};
  return variant;
}

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
  Variant (*variantOf)(const cluster::JobSpec& job);
  std::string (*whyNot)(const cluster::JobSpec& job);
};
// In the order of preference.
constexpr OptionRule kOptionRules[] = {
    {"ps", onPs, noPs}, {"hybrid", hybrid, noHybrid}, {"workers", onWorkers, noWorkers}};

// Where tasks are, as indices of links. A link has the spelling of the first task on its host, which
// an option without ps may not have: hosts are compared by hostKey().
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

// Adds what a worker sends and receives of one part of a variable.
void addPart(const graph::PlacedVariable& variable, const graph::VariablePart& part,
             double dense_factor, ShardBytes& shard) {
  const double bytes = static_cast<double>(part.count) * sizeof(float);
  if (!variable.gradient_rows_max) {
    shard.pushed += bytes * dense_factor;
    shard.answered += bytes * dense_factor;
    return;
  }
  // The rows of a batch, spread over the parts.
  const double share = bytes / static_cast<double>(variable.bytes());
  const double pushed = share * static_cast<double>(variable.gradientBytesMax());
  shard.pushed += pushed;
  shard.answered += pushed - share * static_cast<double>(*variable.gradient_rows_max) * kRowIdBytes;
}

StepBytes bytesOf(const cluster::JobSpec& job, const HostIndex& index) {
  const cluster::TrainSpec& train = *job.train;
  const model::ModelGraph model = train::trainingGraphOf(train);
  const graph::Placement placed =
      train::placeModel(model.graph, train::placementOf(train), job.cluster, kChief.index);
  StepBytes step{workerHosts(job, index), {}};
  for (const size_t host : shardHosts(job, index)) step.shards.push_back({host});
  const double dense_factor = replication::transferShare(train.replication);
  for (const graph::PlacedVariable& variable : placed.variables)
    for (const graph::VariablePart& part : variable.parts)
      addPart(variable, part, dense_factor, step.shards.at(part.ps_task));
  const bool is_replica = job.durability.kind == cluster::Durability::kReplica;
  if (is_replica && step.shards.size() > 1)
    for (ShardBytes& shard : step.shards) shard.backed_up = shard.pushed;
  return step;
}

// `--set` with the whole of `placement`, which replaces the word auto.
std::string placementOverride(const PlacementSpec& placement) {
  Json json = {{"strategy", placement.strategy == Strategy::kHybrid ? "hybrid" : "even"}};
  if (!placement.shares.empty()) json["shares"] = placement.shares;
  if (!placement.pins.empty()) json["pins"] = placement.pins;
  if (placement.partition_min_bytes == 0)
    json["partition"] = "none";
  else if (placement.partition_min_bytes != PlacementSpec().partition_min_bytes)
    json["partition"] = Json{{"min_bytes", placement.partition_min_bytes}};
  return "train.placement=" + json.dump();
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

PlacementOption optionOf(const OptionRule& rule, const cluster::JobSpec& job,
                         const std::vector<HostLink>& links) {
  PlacementOption option{rule.name, rule.whyNot(job), {}, {}, {}};
  const std::vector<std::string>& among = job.train->placement.among;
  if (!among.empty() && std::ranges::find(among, option.name) == among.end())
    option.why_not = "'among' leaves it out";
  if (!option.why_not.empty()) return option;
  Variant variant = rule.variantOf(job);
  const HostIndex index(variant.job, links);
  PlacementSpec& placement = variant.job.train->placement;
  option.cost = costOf(bytesOf(variant.job, index), links);
  placement.shares = rounded(sharesOf(variant.job, index, links));
  const ExchangeCost weighted = costOf(bytesOf(variant.job, index), links);
  if (weighted.seconds * kPlacementBetterBy < option.cost.seconds) {
    option.cost = weighted;
    option.shares = placement.shares;
  } else {
    placement.shares.clear();
  }
  option.overrides = std::move(variant.overrides);
  option.overrides.push_back(placementOverride(placement));
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

PlacementChoice choosePlacement(const cluster::JobSpec& job, const std::vector<HostLink>& links) {
  DTF_CHECK(job.train.has_value());
  PlacementChoice choice{links, {}, 0};
  std::optional<size_t> best;
  std::string reasons;
  for (const OptionRule& rule : kOptionRules) {
    const PlacementOption& option = choice.options.emplace_back(optionOf(rule, job, links));
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
