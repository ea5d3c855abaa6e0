#pragma once

// The gradients of a variable that wait for a step of synchronous replicas: TensorFlow's
// ConditionalAccumulator, of which each gradient can be named.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/byte_budget.h"
#include "common/base/error.h"
#include "common/base/mutex.h"
#include "common/tensor/tensor.h"

namespace dtf::engine {

// Holds the gradients of the variable's current version alone: what belongs to another version is
// dropped by the next call. Of one rank it holds the gradients that have arrived at the barrier,
// and the newest, so a client that dies and returns again and again takes no more memory.
// Owns: the gradients, with their share of the budget.
// Threads: thread-safe.
// Blocks: never.
// Errors: kUnavailable without room, and in find() for a gradient that isn't there.
class GradientAccumulator {
 public:
  struct Gradient {
    int64_t rank = 0;
    int64_t ticket = 0;  // never given twice
    int64_t step = 0;    // the version of the variable that it was computed from
    Tensor values;       // dense, or a row for each index
    Tensor indices;      // of rows; else it has no bytes
    bool is_sparse = false;
    ByteBudget::Share share{};
  };
  using Gradients = std::vector<std::shared_ptr<const Gradient>>;

  // The tickets of a rank: its newest, and the last one that has arrived at the barrier.
  struct Ticket {
    int64_t number = 0;
    int64_t arrived = 0;
  };

  // Gradients that it holds at most.
  static constexpr size_t kGradientsMax = 1 << 16;

  // `name`: of the variable, for messages.
  GradientAccumulator(std::string name, std::shared_ptr<ByteBudget> budget);

  // Keeps a gradient, unless its step is not `version`, the variable's: then returns false.
  bool apply(int64_t version, Gradient gradient, int64_t arrived);
  // Returns the share for a gradient of these bytes. Errors: kUnavailable.
  ByteBudget::Share shareOf(uint64_t bytes) const;
  // Returns the gradients with these tickets, in this order.
  Gradients find(std::span<const int64_t> tickets) const;
  void clear();
  size_t size() const;

 private:
  const std::string name_;
  const std::shared_ptr<ByteBudget> budget_;
  mutable Mutex mutex_;
  Gradients gradients_ DTF_GUARDED_BY(mutex_);
};

}  // namespace dtf::engine
