#pragma once

// TensorFlow 1's optimizers as pure functions over ranges of an arena: old parameters, gradients
// and slots in, new parameters out. Each element depends on the same element of its inputs only,
// and every operation is IEEE exact, so the result has the same bits for every way of splitting a
// range and for every instruction set.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "common/cluster/spec.h"

namespace dtf::ps {

// Slots: arrays beside the parameters, of the same layout, that an optimizer keeps. They are
// numbered in the order in which TensorFlow makes them; the moving average, where one is kept, is
// the last.
inline constexpr uint32_t kSlotsMax = 4;  // centered rmsprop with a moving average
uint32_t slotCount(const cluster::OptimizerSpec& spec);
// What TensorFlow appends to the variable's name in a checkpoint: "Adam", "Adam_1",
// "ExponentialMovingAverage".
std::string slotName(const cluster::OptimizerSpec& spec, uint32_t slot);
// Starts as the parameters do, where every other slot starts as initialSlotValue().
bool isMovingAverage(const cluster::OptimizerSpec& spec, uint32_t slot);
float initialSlotValue(const cluster::OptimizerSpec& spec, uint32_t slot);

// The scalars of one apply.
struct UpdateConstants {
  cluster::OptimizerSpec::Kind kind = cluster::OptimizerSpec::Kind::kGradientDescent;
  float learning_rate = 0;    // adam: lr_t = lr * sqrt(1 - beta2^t) / (1 - beta1^t)
  float one_minus_beta1 = 0;  // adam
  float one_minus_beta2 = 0;  // adam
  float epsilon = 0;          // adam: "epsilon hat", outside the bias correction
};

// Counts applies and hands out their constants. The beta powers are running products in double
// precision, as TensorFlow's beta1_power variables, not pow(): the same bits with every C library.
// Value type, thread-compatible.
class OptimizerClock {
 public:
  // All that changes: what a checkpoint keeps.
  struct State {
    uint64_t applies = 0;
    double beta1_power = 1;  // beta1 to the power of `applies`
    double beta2_power = 1;
    bool operator==(const State&) const = default;
  };

  explicit OptimizerClock(const cluster::OptimizerSpec& spec) : spec_(spec) {}
  UpdateConstants next();  // of the next apply, which it counts

  const State& state() const { return state_; }
  void restore(const State& state) { state_ = state; }

 private:
  cluster::OptimizerSpec spec_;
  State state_;
};

// Arrays of equal length. `new_parameters` may not overlap any other; slots are updated in place.
struct UpdateArrays {
  const float* old_parameters = nullptr;
  float* new_parameters = nullptr;
  std::array<float*, kSlotsMax> slots{};  // nullptr where the kind has none
  // 1..n gradients. Their mean is taken: summed in this order, left to right, then divided by their
  // number.
  std::span<const float* const> gradients;
};

// Updates elements [begin, end): sum, mean and update fused in cache-sized chunks, each gradient
// read once. Thread-safe for disjoint ranges.
//   gradient_descent: w' = w - lr*g
//   adagrad (v1, no epsilon): a += g^2; w' = w - lr*g/sqrt(a)
//   adam: m += (g-m)(1-b1); v += (g^2-v)(1-b2); w' = w - lr_t*m/(sqrt(v)+eps)   (Kingma & Ba,
//   before section 2.1)
void updateRange(const UpdateConstants& constants, const UpdateArrays& arrays, uint64_t begin,
                 uint64_t end);

// The index of the first infinity or NaN; nullopt when every value is finite. Runs at memory speed.
std::optional<uint64_t> firstNonFinite(std::span<const float> values);

}  // namespace dtf::ps
