#include "tests/bench/bound_step.h"

#include <map>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "common/train/initial_values.h"
#include "common/train/model_part.h"

namespace dtf::bench {

namespace {

train::ModelStep stepOf(const model::ModelGraph& model, const cluster::TrainSpec& train,
                        const train::ComputeDevice& on) {
  const graph::Placement placement =
      train::placeModel(model.graph, train::placementOf(train), 1, 0);
  return train::ModelStep(model, train::trainingPart(model, placement, 0, on), on);
}

}  // namespace

BoundStep::BoundStep(const cluster::TrainSpec& train, const data::Dataset& dataset,
                     const train::ComputeDevice& on)
    : model_(train::trainingGraphOf(train)), step_(stepOf(model_, train, on)) {
  for (uint32_t i = 0; i < model_.variables.size(); ++i) {
    const auto elements =
        static_cast<size_t>(model_.graph.spec(model_.variables[i].value).shape.elements());
    values_.emplace_back(elements, 0.01f);
    gradients_.emplace_back(elements);
    step_.bindValue(i, values_.back().data());
    step_.bindGradient(i, gradients_.back().data());
  }
  std::vector<const std::byte*> parts;
  for (const data::Part& part : dataset.parts())
    parts.push_back(reinterpret_cast<const std::byte*>(part.of(0).data()));
  step_.bindExamples(parts);
}

void addOps(const runtime::StepPlan& plan, std::span<const double> seconds, Report& by_op) {
  DTF_CHECK(seconds.size() == plan.kernels.size());
  std::map<std::string, std::pair<double, int>> ops;
  double all = 0;
  for (size_t i = 0; i < seconds.size(); ++i) {
    auto& [sum, count] = ops[plan.kernels[i].op];
    sum += seconds[i];
    ++count;
    all += seconds[i];
  }
  for (const auto& [op, of_op] : ops)
    by_op.add(op, {of_op.first * 1e6, static_cast<double>(of_op.second), of_op.first / all});
}

}  // namespace dtf::bench
