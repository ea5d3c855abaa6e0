#include "common/runtime/gradient_order.h"

#include <map>
#include <set>
#include <utility>
#include <vector>

namespace dtf::runtime {
namespace {

using graph::Output;

// Takes operations in order, but producers of gradients as soon as their inputs are ready.
class EarlyOrder {
 public:
  explicit EarlyOrder(LoweredStep& step) : from_(step.operations) {
    std::set<Output> gradients, made;
    for (const BoundTensor& gradient : step.gradients) gradients.insert(gradient.tensor);
    missing_.resize(from_.size());
    for (const Operation& operation : from_)
      made.insert(operation.outputs.begin(), operation.outputs.end());
    for (size_t i = 0; i < from_.size(); ++i) {
      bool makes_one = false;
      for (const Output& output : from_[i].outputs) makes_one |= gradients.contains(output);
      if (!makes_one) continue;
      const std::set<Output> inputs(from_[i].inputs.begin(), from_[i].inputs.end());
      for (const Output& input : inputs) {
        if (!made.contains(input)) continue;  // bound, or a constant
        waiting_[input].push_back(i);
        ++missing_[i];
      }
    }
  }

  std::vector<Operation> take() {
    taken_.resize(from_.size());
    for (size_t i = 0; i < from_.size(); ++i) take(i);
    return std::move(to_);
  }

 private:
  void take(size_t index) {
    if (taken_[index]) return;
    taken_[index] = true;
    const std::vector<Output> outputs = from_[index].outputs;
    to_.push_back(std::move(from_[index]));
    for (const Output& output : outputs)
      for (const size_t waiter : waiting_[output])
        if (--missing_[waiter] == 0) take(waiter);
  }

  std::vector<Operation>& from_;
  std::vector<Operation> to_;
  std::vector<bool> taken_;
  std::vector<size_t> missing_;  // by operation: inputs not yet produced
  // by tensor: the producers of gradients that wait for it
  std::map<Output, std::vector<size_t>> waiting_;
};

}  // namespace

void makeGradientsEarly(LoweredStep& step) {
  step.operations = EarlyOrder(step).take();
}

}  // namespace dtf::runtime
