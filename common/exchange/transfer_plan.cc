#include "common/exchange/transfer_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/arena/shard_codecs.h"
#include "common/base/text.h"
#include "common/replication/replication_rules.h"

namespace dtf::exchange {

namespace {

Choice used() {
  return {true, {}};
}

Choice unused(std::string why) {
  return {false, std::move(why)};
}

bool isCompressed(const JobTransfers& job) {
  return job.codec.kind != arena::CodecKind::kFloat32;
}

Choice compression(const JobTransfers& job) {
  if (!isCompressed(job)) return unused("'replication.transfer_dtype' is float32");
  if (job.one_process)
    return unused("'transfer_dtype' needs a ps, and the cluster has none: nothing travels");
  return used();
}

// The peer's refusal is last: it is found when everything else permits to ask for it.
Choice sharedParameters(const JobTransfers& job, const ShardTransfers& shard,
                        const TransferAbilities& own, const TransferPeer& peer) {
  const uint64_t bytes = shard.elements * sizeof(float);
  if (job.one_process) return unused("the worker holds the parameters itself");
  if (isCompressed(job))
    return unused(fmt::format(
        "this job's parameters and gradients travel as {}, so that its numbers don't depend on "
        "where its tasks run",
        arena::codecName(job.codec.kind)));
  if (own.transport == cluster::Transport::kRdma)
    return unused("its cluster file says 'transport: rdma'");
  if (!own.share_from_bytes) return unused("its cluster file says 'shared_memory: false'");
  if (shard.elements == 0) return unused("the shard is empty");
  if (bytes < *own.share_from_bytes)
    return unused(fmt::format("the shard has {}, less than {}", bytesText(bytes),
                              bytesText(*own.share_from_bytes)));
  if (!peer.on_this_host) return unused("the tasks are on different hosts");
  if (!peer.memory_fault.empty()) return unused(peer.memory_fault);
  return used();
}

Choice sharedGradients(const JobTransfers& job, const ShardTransfers& shard,
                       const TransferPeer& peer, const Choice& parameters) {
  if (!parameters.is_used) return parameters;
  if (shard.has_tables) return unused("the size of gradients with rows differs from step to step");
  if (job.batches_per_step > 1)
    return unused("the ps keeps gradients of several batches a step beyond its reply");
  if (!peer.gradients_fault.empty()) return unused(peer.gradients_fault);
  return used();
}

Choice remoteMemory(const JobTransfers& job, const ShardTransfers& shard,
                    const TransferAbilities& own) {
  if (own.transport != cluster::Transport::kRdma)
    return unused("its cluster file doesn't say 'transport: rdma'");
  if (job.one_process) return unused("the worker holds the parameters itself");
  if (std::string fault = rdmaFault(job); !fault.empty()) return unused(std::move(fault));
  if (shard.elements == 0) return unused("the shard is empty");
  return used();
}

Choice overlapOf(const JobTransfers& job) {
  if (!job.overlap) return unused("'replication.overlap' is false");
  if (job.shares_steps)
    return unused(
        "'overlap' needs 'mode: async' or 'mode: bounded': each gradient of a sync step is "
        "computed from the newest parameters");
  if (job.one_process)
    return unused("'overlap' needs a ps, and the cluster has none: no gradient travels");
  return used();
}

Choice streamingOf(const JobTransfers& job, const ShardTransfers& shard,
                   const TransferAbilities& own, const TransferPeer& peer,
                   const TransferPlan& plan) {
  if (job.one_process) return unused("no gradient leaves the worker");
  if (!own.stream_from_bytes) return unused("its cluster file says 'stream_gradients: false'");
  if (plan.overlap.is_used)
    return unused("with 'overlap' the whole exchange is beside the next batch");
  if (job.has_tables)
    return unused("the model has sparse variables: the rows are known at the end");
  if (job.batches_per_step > 1)
    return unused("several batches of a step are computed from the same parameters");
  if (job.towers > 1) return unused("the gradient is the mean of several devices");
  if (plan.host_sum.is_used) return unused("the gradient is the mean of several workers");
  if (job.clips_by_norm) return unused("'clip_by_global_norm' needs the whole gradient");
  if (shard.encoded_bytes < *own.stream_from_bytes)
    return unused(fmt::format("the gradient has {}, less than {}", bytesText(shard.encoded_bytes),
                              bytesText(*own.stream_from_bytes)));
  if (plan.shared_gradients.is_used) return unused("the gradient is read where it is computed");
  if (plan.remote_memory.is_used) return unused("with 'transport: rdma' a gradient is put whole");
  if (!peer.takes_unfinished) return unused("the connection takes whole messages");
  return used();
}

Choice rowsOf(const JobTransfers& job, const ShardTransfers& shard, const TransferPlan& plan) {
  if (!shard.has_tables) return unused("the shard has no sparse variables");
  if (job.one_process) return unused("the worker holds the parameters itself");
  if (plan.overlap.is_used)
    return unused("with 'overlap' an exchange begins before its next batch is known");
  if (job.batches_per_step > 1)
    return unused("several batches of a step are computed from the same parameters");
  if (plan.shared_parameters.is_used) return unused("all rows are in shared memory");
  return used();
}

Choice hostSum(const JobTransfers& job) {
  if (!job.sums_hosts) return unused("'replication.topology' doesn't say 'hosts: sum'");
  if (job.workers_summed == 1) return unused("no other worker has the host of this one");
  return used();
}

// A transport that the file asks for is used, or the job is refused: it never falls back.
std::string transportFault(const JobTransfers& job, const TransferAbilities& own,
                           const TransferPeer& peer) {
  const bool asked = own.transport == cluster::Transport::kRdma;
  if (peer.transport && *peer.transport != own.transport)
    return fmt::format(
        "the cluster file of {} says 'transport: rdma', and the other's doesn't, or is of a "
        "version "
        "without it: start all tasks with the same file, from one version",
        asked ? "this task" : "the other task");
  return asked ? rdmaFault(job) : std::string();
}

std::string faultOf(const JobTransfers& job, const TransferAbilities& own,
                    const TransferPeer& peer) {
  if (job.one_process) return {};
  if (std::string fault = transportFault(job, own, peer); !fault.empty()) return fault;
  if (job.sums_hosts && job.has_tables)
    return "'topology: {hosts: sum}' sums whole arenas, and the rows of sparse variables differ "
           "from worker to worker: leave out 'topology'";
  if (!peer.codecs) return {};
  const std::string_view needed = arena::codecName(job.codec.kind);
  if (std::ranges::find(*peer.codecs, needed) != peer.codecs->end()) return {};
  return fmt::format(
      "this job's parameters and gradients travel as {}, and the other task's version "
      "doesn't have it: start all tasks of the job from one",
      needed);
}

}  // namespace

std::string rdmaFault(const JobTransfers& job) {
  if (isCompressed(job))
    return "'transport: rdma' moves float32 alone: leave out 'transport', or 'transfer' and "
           "'transfer_dtype'";
  if (job.has_tables)
    return "'transport: rdma' moves whole arenas, and the rows of sparse variables differ from "
           "step "
           "to step: leave out 'transport'";
  if (job.batches_per_step > 1)
    return "'transport: rdma' has one arena for a worker's gradient, and with "
           "'replicas_to_aggregate' a worker sends several in a step: leave out one of them";
  return {};
}

JobTransfers transfersOf(const cluster::ReplicationSpec& replication, uint32_t rank) {
  return {.shares_steps = replication::sharesSteps(replication),
          .overlap = replication.overlap,
          .codec = arena::codecOf(replication),
          .batches_per_step = replication::batchesPerStep(replication, rank),
          .workers_summed = static_cast<uint32_t>(replication::pushedBy(replication, rank).size()),
          .sums_hosts = !replication.host_leaders.empty()};
}

ShardTransfers shardOf(const arena::ParameterLayout& layout, uint32_t ps_task,
                       const arena::CodecSpec& codec) {
  const arena::ShardCodecs codecs(codec, layout, ps_task);
  return {.elements = codecs.whole().elements(),
          .encoded_bytes = codecs.encodedBytes(),
          .has_tables = codecs.rowsAlone() != nullptr};
}

TransferPlan planTransfer(const JobTransfers& job, const ShardTransfers& shard,
                          const TransferAbilities& own, const TransferPeer& peer) {
  TransferPlan plan;
  plan.compressed = compression(job);
  plan.shared_parameters = sharedParameters(job, shard, own, peer);
  plan.shared_gradients = sharedGradients(job, shard, peer, plan.shared_parameters);
  plan.remote_memory = remoteMemory(job, shard, own);
  plan.overlap = overlapOf(job);
  plan.host_sum = hostSum(job);
  plan.streaming = streamingOf(job, shard, own, peer, plan);
  plan.rows = rowsOf(job, shard, plan);
  plan.fault = faultOf(job, own, peer);
  const auto direction = [&plan, &job](const Choice& shared) -> Direction {
    return {plan.compressed.is_used ? job.codec.kind : arena::CodecKind::kFloat32,
            plan.remote_memory.is_used ? Channel::kRemoteMemory
            : shared.is_used           ? Channel::kSharedMemory
                                       : Channel::kMessages};
  };
  plan.parameters = direction(plan.shared_parameters);
  plan.gradients = direction(plan.shared_gradients);
  return plan;
}

std::array<NamedChoice, 8> choicesOf(const TransferPlan& plan) {
  return {{{"compression", plan.compressed},
           {"parameters in shared memory", plan.shared_parameters},
           {"gradients in shared memory", plan.shared_gradients},
           {"remote memory", plan.remote_memory},
           {"overlap", plan.overlap},
           {"streaming", plan.streaming},
           {"rows alone", plan.rows},
           {"sum of the host", plan.host_sum}}};
}

std::string directionText(const Direction& direction) {
  const auto channel = [&] {
    switch (direction.channel) {
      case Channel::kMessages:
        return "in messages";
      case Channel::kSharedMemory:
        return "in shared memory";
      case Channel::kRemoteMemory:
        return "in remote memory";
    }
    return "";
  };
  return fmt::format("{}, {}", arena::codecName(direction.codec), channel());
}

}  // namespace dtf::exchange
