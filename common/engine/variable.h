#pragma once

// A variable where it lives: a value that outlives the steps that read and assign it.

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "common/base/byte_budget.h"
#include "common/base/mutex.h"
#include "common/graph/graph.h"
#include "common/tensor/tensor.h"

namespace dtf::engine {

// Whoever has read a value holds it as it was. An assignment changes the value in place when nobody
// holds it, else writes another and leaves that one to its holders: nobody waits, and nobody sees
// half of an assignment.
// Owns: its value. Borrows: nothing.
// Threads: read() and change() while the device that the variable lives on computes nothing else
// (DeviceQueue), so that they never meet; the rest is thread-safe. What read() gives may be held
// and dropped in any thread.
// Blocks: never.
// Errors: kBadConfig for a variable that has no value yet, naming it; kUnavailable when there is no
// room for another value.
class Variable {
 public:
  // What it has been, for as long as it is held.
  using Value = std::shared_ptr<const Tensor>;

  // `name`: for messages.
  Variable(std::string name, graph::TensorSpec spec, std::shared_ptr<ByteBudget> budget);
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

  const graph::TensorSpec& spec() const { return spec_; }
  bool hasValue() const;

  Value read() const;

  // Its value from now on, of spec(). It wins over a change that is under way.
  void set(std::span<const std::byte> value);
  // It has none from now on; likewise.
  void clear();

  // Gives it the value that `compute` writes to `after`, which is `before`'s memory or other, and
  // gives that value. `before` is what it has been; null without `needs_value`, where it has none.
  // When `compute` throws, it must have written nothing to `before`.
  using Compute = std::function<void(const std::byte* before, std::byte* after)>;
  Value change(bool needs_value, const Compute& compute);

 private:
  // Counts its bytes as long as it is there.
  struct Version {
    explicit Version(const Variable& variable);
    const ByteBudget::Share share;
    Tensor tensor;
    std::atomic<int> holders{0};
  };

  static Value hold(const std::shared_ptr<Version>& version);

  const std::string name_;
  const graph::TensorSpec spec_;
  const std::shared_ptr<ByteBudget> budget_;  // shared with values that outlive the variable
  mutable Mutex mutex_;
  std::shared_ptr<Version> current_
      DTF_GUARDED_BY(mutex_);  // shared with its holders; null: no value
  bool changing_ DTF_GUARDED_BY(mutex_) = false;
};

}  // namespace dtf::engine
