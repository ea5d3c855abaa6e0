#include "common/cluster/read_replication.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "common/cluster/schema.h"
#include "common/yaml/keys.h"
#include "common/yaml/map_reader.h"

namespace dtf::cluster {

using yaml::inQuotes;
using yaml::MapReader;
using yaml::Place;
using yaml::Report;
using yaml::YamlNode;

namespace {

// Returns false for a mode that was reported as a mistake. `allreduce` is sync's name where the
// workers host the parameters.
bool readMode(const MapReader& reader, const TaskCounts& counts, ReplicationSpec::Mode& mode) {
  using Mode = ReplicationSpec::Mode;
  const YamlNode* const node = reader.find("mode");
  if (node == nullptr) return true;
  // In the order of the table.
  enum class Word : uint8_t { kAsync = 1, kSync, kBounded, kAllReduce } word = Word::kAsync;
  static_assert(static_cast<Word>(Mode::kAsync) == Word::kAsync &&
                static_cast<Word>(Mode::kSync) == Word::kSync &&
                static_cast<Word>(Mode::kBounded) == Word::kBounded);
  if (!reader.choice("mode", word, 1)) return false;
  mode = word == Word::kAllReduce ? Mode::kSync : static_cast<Mode>(word);
  if (word != Word::kAllReduce || counts.hosts.ps == 0) return true;
  reader.report().error(
      node->where(),
      "'mode: allreduce' needs a cluster without 'ps': leave 'ps' out, so that the "
      "workers hold the parameters, or write mode: sync, which gives the same "
      "values");
  return false;
}

// Returns the N of "worker/N"; nullopt for another text.
std::optional<uint32_t> workerNamed(std::string_view name) {
  constexpr std::string_view kWorker = "worker/";
  if (!name.starts_with(kWorker)) return std::nullopt;
  const std::string_view digits = name.substr(kWorker.size());
  uint32_t rank = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return rank;
}

// Reads the task that does in a job without ps what ps/0 does in others.
void readLeader(const MapReader& reader, const TaskCounts& counts, uint32_t& leader) {
  std::string name;
  if (!reader.text("leader", name)) return;
  const Place place = reader.find("leader")->where();
  const std::optional<uint32_t> rank = workerNamed(name);
  if (counts.hosts.ps > 0)
    reader.report().error(place,
                          "'leader' needs a cluster without 'ps': the leader of this one is ps/0, "
                          "the first of 'cluster.ps'");
  else if (!rank)
    reader.report().error(place,
                          "the leader is one of the workers, as worker/1, got " + inQuotes(name));
  else if (counts.worker > 0 && *rank >= counts.worker)
    reader.report().error(place, fmt::format("there is no {}: the cluster has {} workers",
                                             inQuotes(name), counts.worker));
  else
    leader = *rank;
}

// Reads the form in which parameters and gradients are sent: `transfer`, or `transfer_dtype`.
void readTransfer(const MapReader& reader, const TaskCounts& counts, ReplicationSpec& replication) {
  using Dtype = ReplicationSpec::TransferDtype;
  reader.choice("transfer_dtype", replication.transfer_dtype, 0);
  const YamlNode* const dtype = reader.find("transfer_dtype");
  const YamlNode* const transfer = reader.find("transfer");
  if (transfer != nullptr && dtype != nullptr)
    reader.report().error(dtype->key_place,
                          "'transfer' and 'transfer_dtype' set the same value: leave "
                          "'transfer_dtype' out");
  if (transfer != nullptr) {
    const MapReader map(*transfer, schema::kTransfer, "transfer", reader.report());
    map.choice("dtype", replication.transfer_dtype, 0);
    if (map.number("top_k", replication.transfer_top_k)) {
      if (const YamlNode* both = map.find("dtype"))
        reader.report().error(both->key_place,
                              "'dtype' and 'top_k' exclude each other: leave 'dtype' or 'top_k' "
                              "out");
      replication.transfer_dtype = Dtype::kTopK;
    }
  }
  const YamlNode* const given = transfer != nullptr ? transfer : dtype;
  if (replication.transfer_dtype != Dtype::kFloat32 && counts.one_process)
    reader.report().error(
        given->key_place,
        yaml::inQuotes(given->key) + " needs a ps, and the cluster has none: nothing travels");
}

// Returns why these settings exclude sums by host; empty: they don't.
std::string topologyFault(const ReplicationSpec& replication, const TaskCounts& counts) {
  const uint32_t needed = replication.replicas_to_aggregate;
  if (counts.one_process) return "needs several workers, and the job is one process: leave it out";
  if (replication.mode != ReplicationSpec::Mode::kSync)
    return "needs 'mode: sync': without it each worker's gradient is applied by itself";
  if (needed != 0 && counts.worker > 0 && needed != counts.worker)
    return fmt::format(
        "needs the gradients of all {} workers, one of each, and 'replicas_to_aggregate' is {}: "
        "leave out one of them",
        counts.worker, needed);
  if (replication.transfer_dtype != ReplicationSpec::TransferDtype::kFloat32)
    return "is for float32 in this version: leave it out, or 'transfer' and 'transfer_dtype'";
  return {};
}

// Reads whether the workers of a host sum their gradients before one of them sends the result.
void readTopology(const MapReader& reader, const TaskCounts& counts, ReplicationSpec& replication) {
  const YamlNode* const topology = reader.find("topology");
  if (topology == nullptr) return;
  enum class Hosts : uint8_t { kApart, kSum } hosts = Hosts::kApart;
  const MapReader map(*topology, schema::kTopology, "topology", reader.report());
  map.choice("hosts", hosts, 0);
  if (hosts == Hosts::kApart) return;
  if (const std::string fault = topologyFault(replication, counts); !fault.empty())
    reader.report().error(map.find("hosts")->where(), "'hosts: sum' " + fault);
  else
    replication.host_leaders = counts.host_leaders;
}

}  // namespace

ReplicationSpec defaultReplication(const TaskCounts& counts) {
  ReplicationSpec replication;
  if (counts.workersHost()) replication.mode = ReplicationSpec::Mode::kSync;
  return replication;
}

ReplicationSpec readReplication(const YamlNode& node, const TaskCounts& counts, Report& report) {
  const MapReader reader(node, schema::kReplication, node.key, report);
  ReplicationSpec replication = defaultReplication(counts);
  const bool mode_known = readMode(reader, counts, replication.mode);
  reader.whole("replicas_to_aggregate", replication.replicas_to_aggregate);
  const bool has_total = reader.whole("total_num_replicas", replication.total_num_replicas);
  const bool is_sync = replication.mode == ReplicationSpec::Mode::kSync;
  const bool is_bounded = replication.mode == ReplicationSpec::Mode::kBounded;
  if (mode_known && !is_sync) {
    for (const std::string_view key : {"replicas_to_aggregate", "total_num_replicas"})
      if (const YamlNode* given = node.find(key))
        report.error(given->key_place, inQuotes(key) + " has a meaning only with 'mode: sync'");
  }
  reader.whole("staleness", replication.staleness);
  const YamlNode* staleness = node.find("staleness");
  if (mode_known && !is_bounded && staleness != nullptr)
    report.error(staleness->key_place, "'staleness' has a meaning only with 'mode: bounded'");
  if (mode_known && is_bounded && staleness == nullptr)
    report.error(node.find("mode")->where(),
                 "'mode: bounded' needs 'staleness': how many steps a worker may be ahead of the "
                 "slowest");
  reader.boolean("overlap", replication.overlap);
  if (replication.overlap && mode_known && is_sync)
    report.error(node.find("overlap")->key_place,
                 "'overlap' needs 'mode: async' or 'mode: bounded': each gradient of a sync step "
                 "is computed from the "
                 "newest parameters");
  if (replication.overlap && counts.one_process)
    report.error(node.find("overlap")->key_place,
                 "'overlap' needs a ps, and the cluster has none: no gradient travels");
  readLeader(reader, counts, replication.leader);
  readTransfer(reader, counts, replication);
  if (mode_known) readTopology(reader, counts, replication);
  if (has_total && counts.worker > 0 && replication.total_num_replicas != counts.worker)
    report.error(node.find("total_num_replicas")->where(),
                 fmt::format("'total_num_replicas' must be the number of workers, {}, got {}",
                             counts.worker, replication.total_num_replicas));
  return replication;
}

}  // namespace dtf::cluster
