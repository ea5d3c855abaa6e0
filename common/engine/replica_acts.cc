#include "common/engine/replica_acts.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/failpoint.h"
#include "common/engine/optimizer_act.h"

namespace dtf::engine {
namespace {

using graph::Graph;
using graph::Node;
using Bytes = std::span<const std::byte>;

int64_t numberIn(Bytes bytes, size_t index = 0) {
  int64_t value = 0;
  DTF_CHECK((index + 1) * sizeof(value) <= bytes.size());
  std::memcpy(&value, bytes.data() + index * sizeof(value), sizeof(value));
  return value;
}

class TicketAct final : public HostAct {
 public:
  explicit TicketAct(const Node& node) : HostAct(node), rank_(node.attribute<int64_t>("rank")) {}

  void run(std::span<Variable* const> variables, std::span<const Bytes>) override {
    const GradientAccumulator::Ticket ticket = variables[0]->barrier().newTicket(rank_);
    outputs_[0].as<int64_t>()[0] = ticket.number;
    outputs_[0].as<int64_t>()[1] = ticket.arrived;
  }

 private:
  const int64_t rank_;
};

class AccumulateAct final : public HostAct {
 public:
  AccumulateAct(const Graph& part, const Node& node)
      : HostAct(node),
        rank_(node.attribute<int64_t>("rank")),
        is_sparse_(node.op == "SparseAccumulatorApplyGradient"),
        gradient_(part.spec(node.inputs[1])),
        indices_(is_sparse_ ? part.spec(node.inputs[2])
                            : graph::TensorSpec{DType::kUInt8, Shape{0}}) {}

  void run(std::span<Variable* const> variables, std::span<const Bytes> inputs) override {
    DTF_CHECK(variables.size() == 1 && inputs.size() == (is_sparse_ ? 4u : 3u));
    DTF_FAILPOINT("replicas.before_accumulate");
    GradientAccumulator& accumulator = variables[0]->accumulator();
    const Bytes ticket = inputs.back(), step = inputs[inputs.size() - 2];
    const int64_t version = counterValue(*variables[0]), local = numberIn(step);
    bool is_kept = false;
    // A gradient that is dropped needs no memory, but makes room for others.
    if (local == version) {
      ByteBudget::Share share = accumulator.shareOf(gradient_.bytes() + indices_.bytes());
      GradientAccumulator::Gradient kept{rank_,
                                         numberIn(ticket),
                                         local,
                                         Tensor(gradient_.dtype, gradient_.shape),
                                         Tensor(indices_.dtype, indices_.shape),
                                         is_sparse_,
                                         std::move(share)};
      std::copy(inputs[0].begin(), inputs[0].end(), kept.values.data());
      if (is_sparse_) std::copy(inputs[1].begin(), inputs[1].end(), kept.indices.data());
      is_kept = accumulator.apply(version, std::move(kept), numberIn(ticket, 1));
    }
    outputs_[0].as<int64_t>()[0] = is_kept ? local : -1;
    DTF_FAILPOINT("replicas.after_accumulate");
  }

 private:
  const int64_t rank_;
  const bool is_sparse_;
  const graph::TensorSpec gradient_, indices_;
};

class FinishAct final : public HostAct {
 public:
  explicit FinishAct(const Node& node) : HostAct(node) {}

  void run(std::span<Variable* const> variables, std::span<const Bytes>) override {
    variables[0]->barrier().finish();
    DTF_FAILPOINT("replicas.after_finish");
  }
};

class ResumeAct final : public HostAct {
 public:
  explicit ResumeAct(const Node& node) : HostAct(node) {}

  void run(std::span<Variable* const> variables, std::span<const Bytes>) override {
    variables[0]->barrier().resume(*variables[0]);
  }
};

// The variable's own version decides whether it takes the step, so every client may bring the
// decision, in any order, any number of times.
class ApplyAccumulatedAct final : public HostAct {
 public:
  ApplyAccumulatedAct(const Graph& part, const Node& node, runtime::ComputePool* pool)
      : HostAct(node),
        name_(node.name),
        is_sparse_(node.attribute<bool>("sparse")),
        update_(node, part.spec(node.inputs.at(0)), graph::variablesOf(node).size() - 2, is_sparse_,
                pool) {}

  void run(std::span<Variable* const> variables, std::span<const Bytes> inputs) override {
    DTF_CHECK(variables.size() >= 2 && inputs.size() == 1);
    Variable& version = *variables.back();
    const int64_t decided = numberIn(inputs[0]);
    int64_t taken = counterValue(version);
    if (decided >= 0 && taken < decided)
      refuse(ErrorCode::kUnavailable, "the variable has taken " + std::to_string(taken) +
                                          " steps, but step " + std::to_string(decided) +
                                          " is to be taken: its task was started again; restore a "
                                          "checkpoint");
    if (taken == decided) {
      DTF_FAILPOINT("replicas.before_take");
      take(variables.first(variables.size() - 1), version, decided, inputs[0]);
      DTF_FAILPOINT("replicas.after_take");
      ++taken;
    }
    outputs_[0].as<int64_t>()[0] = taken;
  }

 private:
  [[noreturn]] void refuse(ErrorCode code, const std::string& why) const {
    throw Error(code, "node '" + name_ + "' (ApplyAccumulated): " + why);
  }

  // The version takes its memory first: after an error neither has changed.
  void take(std::span<Variable* const> variables, Variable& version, int64_t step, Bytes decision) {
    std::vector<int64_t> tickets;
    for (size_t i = 1; i < decision.size() / sizeof(int64_t); ++i)
      tickets.push_back(numberIn(decision, i));
    std::vector<int64_t> sorted = tickets;
    std::sort(sorted.begin(), sorted.end());
    const auto repeated = std::adjacent_find(sorted.begin(), sorted.end());
    if (repeated != sorted.end())
      refuse(ErrorCode::kBadConfig, "the decision has the gradient " + std::to_string(*repeated) +
                                        " twice: take it from SyncReplicasArrive");
    const GradientAccumulator::Gradients gradients = version.accumulator().find(tickets);
    std::vector<const float*> dense;
    std::vector<optimizer::LookUp> rows;
    for (const auto& gradient : gradients) {
      wantFit(*gradient);
      const float* const values = reinterpret_cast<const float*>(gradient->values.data());
      if (is_sparse_)
        rows.push_back({gradient->indices.dtype(), gradient->indices.data(),
                        static_cast<size_t>(gradient->indices.shape().elements()), values});
      else
        dense.push_back(values);
    }
    version.change(true, [&](const std::byte*, std::byte* after) {
      update_.run(variables, {.dense = dense, .rows = rows}, step);
      DTF_FAILPOINT("replicas.in_take");
      const int64_t next = step + 1;
      std::memcpy(after, &next, sizeof(next));
    });
    version.accumulator().clear();
  }

  // Clients may have other graphs.
  void wantFit(const GradientAccumulator::Gradient& gradient) const {
    const Shape& shape = update_.variable().shape;
    const int64_t rows = gradient.indices.shape().elements();
    const int64_t row =
        shape.rank() == 0 || shape.dim(0) == 0 ? 0 : shape.elements() / shape.dim(0);
    const bool fits = gradient.is_sparse == is_sparse_ &&
                      (is_sparse_ ? gradient.values.shape().elements() == rows * row
                                  : gradient.values.shape() == shape);
    if (!fits)
      refuse(ErrorCode::kBadConfig, "the gradient of rank " + std::to_string(gradient.rank) +
                                        " has another shape: the clients have different graphs");
  }

  const std::string name_;
  const bool is_sparse_;
  OptimizerUpdate update_;
};

}  // namespace

bool isReplicaAct(const Node& node) {
  static constexpr std::string_view kOps[] = {
      "SyncReplicasTicket", "AccumulatorApplyGradient", "SparseAccumulatorApplyGradient",
      "ApplyAccumulated",   "SyncReplicasFinish",       "SyncReplicasResume"};
  return std::find(std::begin(kOps), std::end(kOps), node.op) != std::end(kOps);
}

std::unique_ptr<HostAct> makeReplicaAct(const Graph& part, const Node& node,
                                        runtime::ComputePool* pool) {
  DTF_CHECK_MSG(isReplicaAct(node), node.name);
  if (node.op == "SyncReplicasTicket") return std::make_unique<TicketAct>(node);
  if (node.op == "SyncReplicasFinish") return std::make_unique<FinishAct>(node);
  if (node.op == "SyncReplicasResume") return std::make_unique<ResumeAct>(node);
  if (node.op == "ApplyAccumulated") return std::make_unique<ApplyAccumulatedAct>(part, node, pool);
  return std::make_unique<AccumulateAct>(part, node);
}

ArriveAct::ArriveAct(const Node& node)
    : op_(node.op), node_(node.name), is_pause_(op_ == graph::kPauseOp) {
  DTF_CHECK_MSG(graph::waitsForReplicas(node), node_);
  if (is_pause_) return;
  rank_ = node.attribute<int64_t>("rank");
  replicas_to_aggregate_ = node.attribute<int64_t>("replicas_to_aggregate");
  total_num_replicas_ = node.attribute<int64_t>("total_num_replicas");
  variables_ = node.attribute<std::string>("variables");
}

Awaited::Wait ArriveAct::start(Variable& global_step, std::span<const Bytes> inputs,
                               ReplicaBarrier::Done done) const {
  if (is_pause_) return global_step.barrier().pause(std::move(done));
  DTF_CHECK(inputs.size() >= 2);
  std::vector<int64_t> steps;
  for (const Bytes& step : inputs.subspan(1)) steps.push_back(numberIn(step));
  return global_step.barrier().arrive(
      global_step,
      {rank_, numberIn(inputs[0]), steps, replicas_to_aggregate_, total_num_replicas_, variables_},
      std::move(done));
}

QueueAct::Result ArriveAct::finish(FifoQueue::Elements elements) const {
  DTF_CHECK(elements.size() == 1 && elements[0].components.size() == (is_pause_ ? 0u : 3u));
  QueueAct::Result result;
  result.outputs = std::move(elements[0].components);
  result.shares.push_back(std::move(elements[0].share));
  return result;
}

std::string ArriveAct::awaited(Variable& global_step) const {
  return "node '" + node_ + "' (" + op_ + ") waits: " + global_step.barrier().awaited();
}

}  // namespace dtf::engine
