#pragma once

// Helpers shared by the files that implement fusion.h.

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "common/runtime/fusion.h"

namespace dtf::runtime {

// The producer and the readers of each tensor. Borrows: the step, which must not change meanwhile.
class Uses {
 public:
  explicit Uses(const LoweredStep& step) : step_(step) {
    for (size_t i = 0; i < step.operations.size(); ++i) {
      const Operation& made = step.operations[i];
      for (size_t at = 0; at < made.outputs.size(); ++at) {
        producers_[made.outputs[at]] = i;
        specs_.emplace(made.outputs[at], made.output_specs[at]);
      }
      for (const graph::Output& input : step.operations[i].inputs) readers_[input].push_back(i);
    }
    for (const BoundTensor& fetch : step.fetches) kept_.insert(fetch.tensor);
    for (const BoundTensor& gradient : step.gradients) kept_.insert(gradient.tensor);
  }

  const Operation& operation(size_t index) const { return step_.operations[index]; }
  bool kept(const graph::Output& tensor) const { return kept_.contains(tensor); }

  // Returns whether `reader` reads its input in the shape of its producer: a Reshape in between is
  // no operation of its own. Fed tensors have only their readers' shapes.
  bool readsAsMade(const Operation& reader, size_t input) const {
    const auto made = specs_.find(reader.inputs[input]);
    return made == specs_.end() || made->second == reader.input_specs[input];
  }

  // Returns the operation of type `op` that produces input `input` of `reader`, not reshaped.
  std::optional<size_t> producer(const Operation& reader, size_t input, std::string_view op) const {
    return readsAsMade(reader, input) ? producer(reader.inputs[input], op) : std::nullopt;
  }
  // Returns the operation of type `op` that produces `tensor`, in any shape.
  std::optional<size_t> producer(const graph::Output& tensor, std::string_view op) const {
    const auto at = producers_.find(tensor);
    if (at == producers_.end() || operation(at->second).op != op) return std::nullopt;
    return at->second;
  }
  // Returns whether `tensor` depends on the results of operation `index`. Operations are in
  // topological order.
  bool dependsOn(const graph::Output& tensor, size_t index) const {
    std::vector<graph::Output> open = {tensor};
    std::set<size_t> seen;
    while (!open.empty()) {
      const auto at = producers_.find(open.back());
      open.pop_back();
      if (at == producers_.end() || at->second < index || !seen.insert(at->second).second) continue;
      if (at->second == index) return true;
      const std::vector<graph::Output>& inputs = operation(at->second).inputs;
      open.insert(open.end(), inputs.begin(), inputs.end());
    }
    return false;
  }
  const std::vector<size_t>& readers(const graph::Output& tensor) const {
    static const std::vector<size_t> none;
    const auto at = readers_.find(tensor);
    return at == readers_.end() ? none : at->second;
  }
  // Returns the readers of type `op` that read `tensor` only as their input `input`, not reshaped.
  std::vector<size_t> readersAs(const graph::Output& tensor, std::string_view op,
                                size_t input) const {
    std::vector<size_t> found;
    for (const size_t reader : readers(tensor)) {
      const std::vector<graph::Output>& inputs = operation(reader).inputs;
      if (operation(reader).op == op && inputs[input] == tensor &&
          std::count(inputs.begin(), inputs.end(), tensor) == 1 &&
          readsAsMade(operation(reader), input)) {
        found.push_back(reader);
      }
    }
    return found;
  }

 private:
  const LoweredStep& step_;
  std::map<graph::Output, size_t> producers_;
  std::map<graph::Output, graph::TensorSpec> specs_;  // in the producers' shapes
  std::map<graph::Output, std::vector<size_t>> readers_;
  std::set<graph::Output> kept_;
};

// Adds the fused operations of all layers that end in a pooling to `fused`, and the indices of the
// replaced ones to `covered`. `first_layers`: includes their convolutions.
void fusePooling(const LoweredStep& step, const Uses& uses, bool first_layers,
                 std::set<size_t>& covered, std::vector<Operation>& fused);

// The same for normalisations that end in a relu.
void fuseBatchNorm(const LoweredStep& step, const Uses& uses, std::set<size_t>& covered,
                   std::vector<Operation>& fused);

}  // namespace dtf::runtime
