#pragma once

// A variable: a value that outlives the steps that read and assign it.

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "common/base/byte_budget.h"
#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "common/engine/gradient_accumulator.h"
#include "common/graph/graph.h"
#include "common/tensor/tensor.h"

namespace dtf::engine {

class ReplicaBarrier;

// A reader holds the value that it has read. An assignment changes the value in place if no reader
// holds it; otherwise it writes a new value and leaves the old one to its holders. So no thread
// waits, and no reader sees half of an assignment.
// Owns: its value; with synchronous replicas, also the gradients that wait beside it, or the
// barrier of the global step. Borrows: nothing.
// Threads: read() and change() only while the variable's device computes nothing else
// (DeviceQueue), so that they never overlap; the rest is thread-safe. Results of read() may be held
// and dropped in any thread.
// Blocks: never.
// Errors: kBadConfig with the name for a variable without a value; kUnavailable without room for
// another value.
class Variable {
 public:
  // An unchanging value, as long as it is held.
  using Value = std::shared_ptr<const Tensor>;

  // `name`: for messages. `process`: the one that holds it.
  Variable(std::string name, graph::TensorSpec spec, std::shared_ptr<ByteBudget> budget,
           Incarnation process = Incarnation::ofNow());
  ~Variable();
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

  const graph::TensorSpec& spec() const { return spec_; }
  bool hasValue() const;

  Value read() const;

  // Sets its value, of spec(). It wins over a concurrent change. Gradients beside it are dropped,
  // and its barrier is reset.
  void set(std::span<const std::byte> value);
  // Drops its value; likewise.
  void clear();
  // Drops the gradients and resets the barrier alone.
  void resetReplicas();

  // Made by the first call, valid as long as the variable.
  GradientAccumulator& accumulator();
  ReplicaBarrier& barrier();

  // Sets the value that `compute` writes to `after`, which may be the memory of `before`, and
  // returns it. `before` is the old value; null if there is none, which only `needs_value` = false
  // allows. If `compute` throws, it must have written nothing to `before`.
  using Compute = std::function<void(const std::byte* before, std::byte* after)>;
  Value change(bool needs_value, const Compute& compute);

 private:
  // Counts its bytes while it exists.
  struct Version {
    explicit Version(const Variable& variable);
    const ByteBudget::Share share;
    Tensor tensor;
    std::atomic<int> holders{0};
  };

  Error withoutValue() const;
  static Value hold(const std::shared_ptr<Version>& version);

  const std::string name_;
  const graph::TensorSpec spec_;
  const std::shared_ptr<ByteBudget> budget_;  // shared with values that outlive the variable
  const Incarnation process_;
  mutable Mutex mutex_;
  std::shared_ptr<Version> current_
      DTF_GUARDED_BY(mutex_);  // shared with its holders; null: no value
  bool changing_ DTF_GUARDED_BY(mutex_) = false;
  std::unique_ptr<GradientAccumulator> accumulator_ DTF_GUARDED_BY(mutex_);
  std::unique_ptr<ReplicaBarrier> barrier_ DTF_GUARDED_BY(mutex_);
};

// Returns the value of an int64 scalar. Threads and errors: as Variable::read().
int64_t counterValue(const Variable& counter);

}  // namespace dtf::engine
