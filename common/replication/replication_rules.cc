#include "common/replication/replication_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "common/base/check.h"

namespace dtf::replication {

namespace {

using Mode = cluster::ReplicationSpec::Mode;
using Dtype = cluster::ReplicationSpec::TransferDtype;

constexpr double kTopKMax = 0.5;  // more would be as many bytes as all

bool isSync(const cluster::ReplicationSpec& spec) {
  DTF_CHECK(spec.mode >= Mode::kAsync && spec.mode <= Mode::kBounded);
  DTF_CHECK(spec.mode != Mode::kSync ||
            (spec.replicas_to_aggregate > 0 && spec.total_num_replicas > 0));
  return spec.mode == Mode::kSync;
}

// Returns why the spec can't have such sums by host; nullopt: it can, or has none.
std::optional<std::string> topologyFault(const cluster::ReplicationSpec& spec, uint32_t workers) {
  const std::vector<uint32_t>& leaders = spec.host_leaders;
  if (leaders.empty()) return std::nullopt;
  if (spec.mode != Mode::kSync || spec.replicas_to_aggregate != workers ||
      spec.transfer_dtype != Dtype::kFloat32)
    return "sums by host are for sync training in float32 with one gradient of every worker";
  if (leaders.size() != workers)
    return fmt::format("a topology of {} workers, but the cluster has {}", leaders.size(), workers);
  for (uint32_t rank = 0; rank < workers; ++rank)
    if (leaders[rank] > rank || leaders[leaders[rank]] != leaders[rank])
      return fmt::format(
          "worker/{} can't sum the gradients of worker/{}: the lowest rank of a "
          "host does",
          leaders[rank], rank);
  return std::nullopt;
}

}  // namespace

cluster::ReplicationSpec completeReplication(cluster::ReplicationSpec spec, uint32_t workers) {
  DTF_CHECK(workers > 0);
  if (spec.total_num_replicas == 0) spec.total_num_replicas = workers;
  if (spec.replicas_to_aggregate == 0) spec.replicas_to_aggregate = spec.total_num_replicas;
  return spec;
}

std::optional<std::string> replicationFault(const cluster::ReplicationSpec& spec,
                                            uint32_t workers) {
  if (spec.transfer_dtype > Dtype::kTopK)
    return fmt::format("transfer dtype {}", static_cast<int>(spec.transfer_dtype));
  const bool is_share = spec.transfer_top_k > 0 && spec.transfer_top_k <= kTopKMax;
  if (spec.transfer_dtype == Dtype::kTopK ? !is_share : spec.transfer_top_k != 0)
    return fmt::format("top_k is {}, but must be above 0, up to {}", spec.transfer_top_k, kTopKMax);
  if (spec.staleness > 0 && spec.mode != Mode::kBounded)
    return "staleness is only for bounded training";
  if (spec.mode == Mode::kAsync || spec.mode == Mode::kBounded) return topologyFault(spec, workers);
  if (spec.mode != Mode::kSync)
    return fmt::format("replication mode {}", static_cast<int>(spec.mode));
  if (spec.overlap) return "overlap is only for async training";
  if (spec.total_num_replicas != workers)
    return fmt::format("total_num_replicas is {}, but the cluster has {} workers",
                       spec.total_num_replicas, workers);
  if (spec.replicas_to_aggregate == 0 || spec.replicas_to_aggregate > kReplicasToAggregateMax)
    return fmt::format("replicas_to_aggregate is {}, but must be from 1 to {}",
                       spec.replicas_to_aggregate, kReplicasToAggregateMax);
  return topologyFault(spec, workers);
}

std::string_view replicationName(const cluster::ReplicationSpec& spec) {
  if (spec.mode == Mode::kBounded) return "bounded";
  return spec.mode == Mode::kSync ? "sync" : "async";
}

bool recodesTransfers(const cluster::ReplicationSpec& spec) {
  return spec.transfer_dtype != Dtype::kFloat32;
}

bool isLossy(const cluster::ReplicationSpec& spec) {
  return spec.transfer_dtype == Dtype::kInt8 || spec.transfer_dtype == Dtype::kTopK;
}

std::string transferText(const cluster::ReplicationSpec& spec) {
  switch (spec.transfer_dtype) {
    case Dtype::kFloat32:
      return "float32";
    case Dtype::kBFloat16:
      return "bfloat16";
    case Dtype::kInt8:
      return "int8";
    case Dtype::kTopK:
      return fmt::format("top_k {}", spec.transfer_top_k);
  }
  DTF_CHECK(false);
}

double transferShare(const cluster::ReplicationSpec& spec) {
  constexpr double kInt8Share = 260.0 / 1024, kValueAndPosition = 1.5;
  switch (spec.transfer_dtype) {
    case Dtype::kFloat32:
      return 1;
    case Dtype::kBFloat16:
      return 0.5;
    case Dtype::kInt8:
      return kInt8Share;
    case Dtype::kTopK:
      return kValueAndPosition * spec.transfer_top_k;
  }
  DTF_CHECK(false);
}

// ---- steps

bool sharesSteps(const cluster::ReplicationSpec& spec) {
  return isSync(spec);
}

std::optional<uint64_t> staleness(const cluster::ReplicationSpec& spec) {
  if (spec.mode != Mode::kBounded) return std::nullopt;
  return spec.staleness;
}

bool hasBackupWorkers(const cluster::ReplicationSpec& spec) {
  return isSync(spec) && spec.replicas_to_aggregate < spec.total_num_replicas;
}

bool awaitsAll(const cluster::ReplicationSpec& spec) {
  return sharesSteps(spec) && !hasBackupWorkers(spec);
}

uint32_t spareWorkers(const cluster::ReplicationSpec& spec) {
  return hasBackupWorkers(spec) ? spec.total_num_replicas - spec.replicas_to_aggregate : 0;
}

bool queuesBatches(const cluster::ReplicationSpec& spec) {
  return isSync(spec) && spec.replicas_to_aggregate > spec.total_num_replicas;
}

uint32_t batchesPerStep(const cluster::ReplicationSpec& spec, uint32_t rank) {
  if (!isSync(spec) || hasBackupWorkers(spec)) return 1;
  DTF_CHECK(rank < spec.total_num_replicas);
  const uint32_t rest = spec.replicas_to_aggregate % spec.total_num_replicas;
  return spec.replicas_to_aggregate / spec.total_num_replicas + (rank < rest ? 1 : 0);
}

uint32_t pusherOf(const cluster::ReplicationSpec& spec, uint32_t rank) {
  return spec.host_leaders.empty() ? rank : spec.host_leaders.at(rank);
}

std::vector<uint32_t> pushedBy(const cluster::ReplicationSpec& spec, uint32_t rank) {
  if (spec.host_leaders.empty()) return {rank};
  std::vector<uint32_t> ranks;
  for (uint32_t other = 0; other < spec.host_leaders.size(); ++other)
    if (spec.host_leaders[other] == rank) ranks.push_back(other);
  return ranks;
}

std::string topologyText(const cluster::ReplicationSpec& spec) {
  if (spec.host_leaders.empty()) return {};
  return fmt::format("[{}]", fmt::join(spec.host_leaders, ", "));
}

uint32_t gradientsPerStep(const cluster::ReplicationSpec& spec) {
  return isSync(spec) ? spec.replicas_to_aggregate : 1;
}

uint32_t batchesOfOrderStep(const cluster::ReplicationSpec& spec, uint32_t workers) {
  DTF_CHECK(workers > 0);
  return isSync(spec) ? std::max(spec.replicas_to_aggregate, spec.total_num_replicas) : workers;
}

cluster::BatchPlan epochPlan(const cluster::ReplicationSpec& spec, uint32_t workers,
                             uint64_t examples, uint64_t batch_size) {
  const uint32_t batches = sharesSteps(spec) ? batchesOfOrderStep(spec, workers) : 1;
  return cluster::BatchPlan::ofEpochs(examples, batch_size, batches);
}

// ---- checkpoints

CutKind cutKind(const cluster::ReplicationSpec& spec) {
  return isSync(spec) ? CutKind::kAtStep : CutKind::kHeld;
}

std::vector<uint64_t> batchesDone(const cluster::ReplicationSpec& spec, uint32_t workers,
                                  const std::vector<uint64_t>& position, uint64_t global_step) {
  DTF_CHECK(workers > 0);
  return isSync(spec) ? std::vector<uint64_t>(workers, global_step) : position;
}

std::vector<uint64_t> restoredPosition(const cluster::ReplicationSpec& spec, uint32_t workers,
                                       const std::vector<uint64_t>& batches_done,
                                       uint64_t global_step) {
  DTF_CHECK(workers > 0);
  if (isSync(spec)) return {global_step};
  if (batches_done.size() == workers) return batches_done;
  const uint64_t even_part = global_step / workers + (global_step % workers != 0 ? 1 : 0);
  return std::vector<uint64_t>(workers, even_part);
}

}  // namespace dtf::replication
