#include "common/engine/host_act.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "common/arena/initial_value.h"
#include "common/base/check.h"
#include "common/base/error.h"
#include "common/engine/optimizer_act.h"
#include "common/engine/replica_acts.h"
#include "common/graph/standard_ops.h"
#include "common/optimizer/gradient_clip.h"
#include "common/optimizer/sparse_gradient.h"
#include "common/runtime/stop_scope.h"

namespace dtf::engine {
namespace {

using graph::Graph;
using graph::Node;
using Bytes = std::span<const std::byte>;

bool isCounter(const Node& node) {
  return !node.outputs.empty() && node.outputs[0].dtype == DType::kInt64;
}

int64_t counterIn(const std::byte* bytes) {
  int64_t value = 0;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

// Assign, AssignAdd or AssignSub of an int64 scalar, with the value left. Sums wrap, as in C.
class CounterAct final : public HostAct {
 public:
  explicit CounterAct(const Node& node) : HostAct(node), op_(node.op) {}

  void run(std::span<Variable* const> variables, std::span<const Bytes> inputs) override {
    DTF_CHECK(inputs.size() == 1 && inputs[0].size() == sizeof(int64_t));
    const auto by = static_cast<uint64_t>(counterIn(inputs[0].data()));
    variables[0]->change(op_ != "Assign", [&](const std::byte* before, std::byte* after) {
      const uint64_t old = before == nullptr ? 0 : static_cast<uint64_t>(counterIn(before));
      const uint64_t value = op_ == "Assign" ? by : op_ == "AssignAdd" ? old + by : old - by;
      std::memcpy(after, &value, sizeof(value));
      std::memcpy(outputs_[0].data(), &value, sizeof(value));
    });
  }

 private:
  const std::string op_;
};

// Takes the room of the value before it draws, so that a value without room costs nothing. The
// numbers are drawn beside it: a draw that is stopped leaves the old value.
class InitializeAct final : public HostAct {
 public:
  explicit InitializeAct(const Node& node)
      : HostAct(node),
        initializer_(node.attribute<std::string>("initializer")),
        stream_(static_cast<uint32_t>(node.attribute<int64_t>("stream"))) {}

  void run(std::span<Variable* const> variables, std::span<const Bytes> inputs) override {
    const graph::TensorSpec& spec = variables[0]->spec();
    const auto seed = static_cast<uint64_t>(counterIn(inputs[0].data()));
    const std::atomic<bool>* const stop = runtime::StopScope::current();
    variables[0]->resetReplicas();
    variables[0]->change(false, [&](const std::byte*, std::byte* after) {
      if (spec.dtype != DType::kFloat32) {
        std::fill_n(after, spec.bytes(), std::byte{0});
        return;
      }
      const Tensor value = arena::initialValue(initializer_, spec.shape, seed, stream_,
                                               [&](uint64_t) { runtime::throwIfStopped(stop); });
      std::copy_n(value.data(), value.bytes(), after);
    });
  }

 private:
  const std::string initializer_;
  const uint32_t stream_;
};

class IsInitializedAct final : public HostAct {
 public:
  explicit IsInitializedAct(const Node& node) : HostAct(node) {}

  void run(std::span<Variable* const> variables, std::span<const Bytes>) override {
    outputs_[0].as<uint8_t>()[0] = variables[0]->hasValue() ? 1 : 0;
  }
};

// A gradient of ClipByGlobalNorm.
struct Clipped {
  size_t input = 0;  // of the node
  bool is_sparse = false;
  DType ids = DType::kInt32;  // of a sparse one
  size_t count = 0, row_elements = 0;
};

class ClipAct final : public HostAct {
 public:
  ClipAct(const Graph& part, const Node& node)
      : HostAct(node), name_(node.name), clip_norm_(node.attribute<double>("clip_norm")) {
    const std::vector<size_t> sparse = graph::sparseGradients(node.attributes);
    size_t input = 0;
    for (size_t i = 0; i + 1 < node.outputs.size(); ++i) {
      Clipped clipped{input++};
      // Without elements there is nothing to sum.
      if (std::find(sparse.begin(), sparse.end(), i) != sparse.end()) {
        const graph::TensorSpec& ids = part.spec(node.inputs[input++]);
        clipped.ids = ids.dtype;
        clipped.count = static_cast<size_t>(ids.shape.elements());
        const auto elements = static_cast<size_t>(node.outputs[i].shape.elements());
        clipped.is_sparse = elements > 0;
        if (clipped.is_sparse) clipped.row_elements = elements / clipped.count;
      }
      gradients_.push_back(clipped);
    }
  }

  void run(std::span<Variable* const>, std::span<const Bytes> inputs) override {
    std::vector<std::span<float>> values;
    sums_.clear();
    for (size_t i = 0; i < gradients_.size(); ++i)
      values.push_back(gradients_[i].is_sparse ? summed(i, inputs) : copied(i, inputs));
    const double norm = optimizer::clipByGlobalNorm(values, clip_norm_);
    if (!std::isfinite(norm))
      throw Error(ErrorCode::kTrainingFailed, "node '" + name_ +
                                                  "' (ClipByGlobalNorm): the norm of the gradients "
                                                  "is " +
                                                  std::to_string(norm));
    for (const auto& [gradient, sum] : sums_) spread(gradient, sum, inputs);
    outputs_.back().as<float>()[0] = static_cast<float>(norm);
  }

 private:
  // A gradient of rows as one row for each index; rows are bounded by their numbers alone.
  using Sum = std::pair<size_t, std::unique_ptr<optimizer::SparseGradient>>;

  std::span<float> copied(size_t i, std::span<const Bytes> inputs) {
    const Bytes from = inputs[gradients_[i].input];
    DTF_CHECK(from.size() == outputs_[i].bytes());
    if (!from.empty()) std::memcpy(outputs_[i].data(), from.data(), from.size());
    return outputs_[i].as<float>();
  }

  optimizer::LookUp lookUpOf(size_t i, std::span<const Bytes> inputs) const {
    const Clipped& gradient = gradients_[i];
    return {gradient.ids, inputs[gradient.input + 1].data(), gradient.count,
            reinterpret_cast<const float*>(inputs[gradient.input].data())};
  }

  std::span<float> summed(size_t i, std::span<const Bytes> inputs) {
    const optimizer::LookUp look_up = lookUpOf(i, inputs);
    if (const auto bad = optimizer::firstBeyond(look_up, UINT32_MAX))
      throw Error(ErrorCode::kTrainingFailed, "node '" + name_ + "' (ClipByGlobalNorm): index " +
                                                  std::to_string(*bad) + " of gradient " +
                                                  std::to_string(i) + " is no row");
    auto sum = std::make_unique<optimizer::SparseGradient>(UINT32_MAX, gradients_[i].row_elements);
    sum->set(look_up);
    sums_.emplace_back(i, std::move(sum));
    return sums_.back().second->values();
  }

  // Writes each clipped sum to the place of its first index.
  void spread(size_t i, const std::unique_ptr<optimizer::SparseGradient>& sum,
              std::span<const Bytes> inputs) {
    const optimizer::LookUp look_up = lookUpOf(i, inputs);
    const size_t row = gradients_[i].row_elements;
    const std::span<float> to = outputs_[i].as<float>();
    std::fill(to.begin(), to.end(), 0.0F);
    std::vector<bool> is_written(sum->rows().size(), false);
    for (size_t at = 0; at < look_up.count; ++at) {
      const uint32_t id = optimizer::rowAt(look_up, at);
      const auto found = std::lower_bound(sum->rows().begin(), sum->rows().end(), id);
      const auto place = static_cast<size_t>(found - sum->rows().begin());
      DTF_CHECK(place < is_written.size() && *found == id);
      if (is_written[place]) continue;
      is_written[place] = true;
      std::copy_n(sum->values().data() + place * row, row, to.data() + at * row);
    }
  }

  const std::string name_;
  const double clip_norm_;
  std::vector<Clipped> gradients_;
  std::vector<Sum> sums_;  // of the last run
};

}  // namespace

HostAct::HostAct(const Node& node) {
  for (const graph::TensorSpec& spec : node.outputs) outputs_.emplace_back(spec.dtype, spec.shape);
}

bool isHostAct(const Node& node) {
  static constexpr std::string_view kOps[] = {"ApplyOptimizer", "ApplySparseOptimizer",
                                              "InitializeVariable", "IsVariableInitialized",
                                              "ClipByGlobalNorm"};
  if (std::find(std::begin(kOps), std::end(kOps), node.op) != std::end(kOps)) return true;
  if (isReplicaAct(node)) return true;
  return isCounter(node) &&
         (node.op == "Assign" || node.op == "AssignAdd" || node.op == "AssignSub");
}

std::unique_ptr<HostAct> makeHostAct(const Graph& part, const Node& node,
                                     runtime::ComputePool* pool) {
  DTF_CHECK_MSG(isHostAct(node), node.name);
  if (isReplicaAct(node)) return makeReplicaAct(part, node, pool);
  if (isCounter(node)) return std::make_unique<CounterAct>(node);
  if (node.op == "InitializeVariable") return std::make_unique<InitializeAct>(node);
  if (node.op == "IsVariableInitialized") return std::make_unique<IsInitializedAct>(node);
  if (node.op == "ClipByGlobalNorm") return std::make_unique<ClipAct>(part, node);
  return std::make_unique<OptimizerAct>(part, node, pool);
}

}  // namespace dtf::engine
