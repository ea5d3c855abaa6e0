#include "tests/session_sim/replica_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/graph/builder.h"
#include "common/graph/device_name.h"
#include "common/graph/op_def.h"
#include "common/optimizer/minimize.h"
#include "common/optimizer/optimizer_text.h"
#include "tests/unit/optimizer/trainer.h"

namespace dtf::sim {

namespace {

size_t variablesOf(const ReplicasPlan& plan) {
  return plan.world.ps_tasks + 1;
}

// A client brings so many of a step's gradients.
uint32_t shareOf(const ReplicasPlan& plan, uint32_t rank) {
  const uint32_t clients = plan.world.clients;
  if (plan.aggregate <= clients) return 1;
  return plan.aggregate / clients + (rank < plan.aggregate % clients ? 1 : 0);
}

}  // namespace

ReplicaGraph replicaGraph(const ReplicasPlan& plan, uint32_t rank) {
  ReplicaGraph made{graph::Graph(graph::standardOps()), {}, {}, {}};
  graph::Builder b(made.graph);
  const Shape shape{plan.world.elements};
  std::vector<graph::Output> terms;
  for (size_t i = 0; i < variablesOf(plan); ++i) {
    const TaskId ps{JobKind::kPs, std::min(static_cast<uint32_t>(i), plan.world.ps_tasks - 1)};
    graph::Output variable;
    {
      const auto there = b.deviceScope(graph::fullDevice(ps).str());
      made.names.push_back(fmt::format("w{}", i));
      variable = b.variable(made.names.back(), shape, "ones");
    }
    const graph::Output factor = b.placeholder(fmt::format("g{}", i), DType::kFloat32, shape);
    terms.push_back(b.sum(b.mul(b.mul(variable, variable), factor)));
  }
  const auto training = optimizer::minimize(
      made.graph, b.addN(terms), optimizer::decodeOptimizer(plan.optimizer),
      {.replicas = optimizer::SyncReplicas{plan.aggregate, plan.world.clients, rank}});
  made.train = made.graph.node(training.train.node).name;
  made.accepted = made.graph.node(training.accepted->node).name + ":1";
  return made;
}

// The factors have many digits, so that another order of additions gives another sum.
Tensor factorOf(const ReplicasPlan& plan, int64_t step, uint32_t rank, size_t variable) {
  Tensor factor(DType::kFloat32, Shape{plan.world.elements});
  uint64_t x = variable + 1;
  if (plan.hasAllRanks()) x += (static_cast<uint64_t>(step) * 31 + rank) * 31;
  for (float& value : factor.as<float>()) {
    x = (x + 1) * 0x9E3779B97F4A7C15;
    x ^= x >> 31;
    value = static_cast<float>(static_cast<double>(x >> 11) * 0x1p-54);
    if (plan.hasAllRanks())
      value -= 0.25F;  // else the values become smaller: the steps may be many
  }
  return factor;
}

struct UndisturbedValues::Store {
  Store(const std::string& optimizer, const std::vector<float>& values)
      : trainer(optimizer::decodeOptimizer(optimizer), values) {}
  optimizer::Trainer trainer;
};

UndisturbedValues::UndisturbedValues(const ReplicasPlan& plan) : plan_(plan) {
  const std::vector<float> ones(static_cast<size_t>(plan.world.elements), 1);
  for (size_t i = 0; i < variablesOf(plan); ++i)
    stores_.push_back(std::make_unique<Store>(plan.optimizer, ones));
  values_.emplace_back(variablesOf(plan), ones);
}

UndisturbedValues::~UndisturbedValues() = default;

void UndisturbedValues::takeStep() {
  const auto step = static_cast<int64_t>(values_.size()) - 1;
  std::vector<std::vector<float>> after;
  for (size_t i = 0; i < stores_.size(); ++i) {
    const std::vector<float>& before = values_.back()[i];
    std::vector<std::vector<float>> gradients;
    for (uint32_t rank = 0; rank < plan_.world.clients; ++rank) {
      const Tensor factor = factorOf(plan_, step, rank, i);
      std::vector<float> gradient;
      for (size_t k = 0; k < before.size(); ++k)
        gradient.push_back(2 * (factor.as<float>()[k] * before[k]));
      gradients.insert(gradients.end(), shareOf(plan_, rank), gradient);
    }
    gradients.resize(plan_.aggregate);
    optimizer::Trainer& trainer = stores_[i]->trainer;
    trainer.step(gradients);
    after.emplace_back(trainer.w(), trainer.w() + trainer.count);
  }
  values_.push_back(std::move(after));
}

const std::vector<float>& UndisturbedValues::after(int64_t steps, size_t variable) {
  DTF_CHECK(steps >= 0);
  while (std::cmp_less_equal(values_.size(), steps)) takeStep();
  return values_[static_cast<size_t>(steps)][variable];
}

}  // namespace dtf::sim
