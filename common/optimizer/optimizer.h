#pragma once

// TensorFlow 1's optimizers as pure functions over ranges of an arena: old parameters, gradients
// and slots in, new parameters out. Each element depends on the same element of its inputs only
// (lars and lamb: and on norms that were summed in a fixed order), and every operation is IEEE
// exact, so the result has the same bits for every way of splitting a range and for every
// instruction set. The exception is ftrl with a learning_rate_power other than -0.5: its pow() is
// the C library's.

#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "common/cluster/spec.h"

namespace dtf::optimizer {

// Slots: arrays beside the parameters, of the same layout, that an optimizer keeps. They are
// numbered in TensorFlow's order; the moving average, if one is kept, is the last.
inline constexpr uint32_t kSlotsMax = 4;  // centered rmsprop with a moving average
uint32_t slotCount(const cluster::OptimizerSpec& spec);
// Returns the suffix of the variable's name in a TensorFlow checkpoint: "Adam", "Adam_1",
// "ExponentialMovingAverage".
std::string slotName(const cluster::OptimizerSpec& spec, uint32_t slot);
// Returns the optimizer's name in TensorFlow 1's graphs: "GradientDescent", "Adam".
std::string tensorflowName(const cluster::OptimizerSpec& spec);
inline constexpr char kMovingAverageSlot[] = "ExponentialMovingAverage";
// Whether the slot starts as the parameters do; every other slot starts as initialSlotValue().
bool isMovingAverage(const cluster::OptimizerSpec& spec, uint32_t slot);
float initialSlotValue(const cluster::OptimizerSpec& spec, uint32_t slot);

// The scalars of one apply, as the kernels use them: float32, computed in double precision.
struct UpdateConstants {
  cluster::OptimizerSpec::Kind kind = cluster::OptimizerSpec::Kind::kGradientDescent;
  float learning_rate = 0;  // adam, adamw: times sqrt(1 - beta2^t) / (1 - beta1^t)
  float momentum = 0;
  bool use_nesterov = false;
  float rho = 0;            // adadelta
  float one_minus_rho = 0;  // adadelta; rmsprop: 1 - decay
  float one_minus_beta1 = 0;
  float one_minus_beta2 = 0;
  float correction1 = 1;  // lamb: 1 - beta1^t
  float correction2 = 1;
  float epsilon = 0;
  bool centered = false;
  float learning_rate_power = -0.5f;
  float l1 = 0;
  float l2_twice = 0;
  float l2_shrinkage_twice = 0;
  float eeta = 0;
  float weight_decay = 0;  // adamw, lars, lamb: in their formulae; adamw: times the learning rate
  float trust_ratio = 1;   // lars, lamb: of the variable being updated; see SliceNorms

  // Common to all kinds.
  float clip_by_value = 0;            // 0: no clipping
  float l2 = 0;                       // weight decay of the other kinds: g + l2*w
  uint32_t average_slot = kSlotsMax;  // kSlotsMax: no moving average
  float one_minus_average_decay = 0;
};

// Counts applies and hands out their constants. The beta powers are running products in double
// precision, as TensorFlow's beta1_power variables, not pow(): the same bits with every C library.
// Value type, thread-compatible.
class OptimizerClock {
 public:
  // The state that changes, for checkpoints.
  struct State {
    uint64_t applies = 0;
    double beta1_power = 1;  // beta1 to the power of `applies`
    double beta2_power = 1;
    bool operator==(const State&) const = default;
  };

  explicit OptimizerClock(const cluster::OptimizerSpec& spec) : spec_(spec) {}
  UpdateConstants next();  // returns the constants of the next apply, and counts it

  // Returns the state after `applies` calls of next() on a new clock, by as many products at most.
  static State stateAfter(const cluster::OptimizerSpec& spec, uint64_t applies);

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
  // 1..n gradients. Their mean is taken, in this order, by their weights: see meanOf().
  std::span<const float* const> gradients;
  std::span<const uint32_t> weights;
};

// Updates elements [begin, end): mean, clipping, L2, formula and moving average fused in
// cache-sized chunks, each array read once. Thread-safe for disjoint ranges.
//   g                 mean of the gradients; clip_by_value to [-c, c]; then g += weight_decay*w
//                     (not adamw, lars and lamb, which have their own; ftrl has none)
//   gradient_descent  w' = w - lr*g
//   momentum          a = m*a + g; w' = w - lr*a; Nesterov: w' = w - (lr*g + m*lr*a)
//   adagrad           a += g^2; w' = w - lr*g/sqrt(a): version 1's, no epsilon
//   adadelta          a = rho*a + (1-rho)g^2; d = g*sqrt(u+eps)/sqrt(a+eps);
//                     u = rho*u + (1-rho)d^2; w' = w - lr*d
//   adam              m += (g-m)(1-b1); v += (g^2-v)(1-b2); w' = w - lr_t*m/(sqrt(v)+eps): eps is
//                     "epsilon hat", outside the correction (Kingma & Ba, before section 2.1)
//   adamw             as adam, and w' -= lr*weight_decay*w (Loshchilov & Hutter 2019, with the rate
//                     for their schedule, as Keras and PyTorch do)
//   rmsprop           ms += (g^2-ms)(1-decay), from 1; mom = m*mom + lr*g/sqrt(ms+eps);
//                     w' = w - mom
//                     centered: mg += (g-mg)(1-decay); sqrt(max(ms-mg^2, 0)+eps), where
//                     TensorFlow's root may be of a negative number
//   ftrl              n' = n + g^2; z += g + 2*l2_shrinkage*w - (n'^-p - n^-p)/lr*w;
//                     w' = |z| > l1 ? (sign(z)*l1 - z)/(n'^-p/lr + 2*l2) : 0
//   lars              a = m*a + lr*r*(g + weight_decay*w); w' = w - a;
//                     Nesterov: w' = w - (m*a + step)
//                     r = eeta*|w|/(|g| + weight_decay*|w| + eps) (You et al. 2017), 1 where |w| or
//                     |g| is 0
//   lamb              m, v as adam; d = m/(1-b1^t)/(sqrt(v/(1-b2^t))+eps) + weight_decay*w;
//                     w' = w - lr*r*d; r = |w|/|d| (You et al. 2019), 1 where one is 0
//   moving average    s -= (s - w')(1 - decay)
void updateRange(const UpdateConstants& constants, const UpdateArrays& arrays, uint64_t begin,
                 uint64_t end);

// Returns the gradient as the formula uses it (clipped, with L2) of elements [begin, begin + n), n
// at most kChunkElements: in `buffer`, or where it lies already.
const float* effectiveGradient(const UpdateConstants& constants, const UpdateArrays& arrays,
                               uint64_t begin, uint64_t n, float* buffer);

}  // namespace dtf::optimizer
