#pragma once

// Binds the variables and gradients of a step to the client's arenas. A variable that lies whole on
// one ps is used in place: its value in the received arena, its gradient in the arena to send. A
// variable that is split over several ps has a buffer of its own, which is filled after a pull and
// taken apart before a push. The gradient of a sparse variable consists of rows, each of which goes
// to the ps that holds it. Variables that a device keeps (device_variables.h) are copied to the
// host on demand.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/arena/gradient_layout.h"
#include "common/arena/parameter_layout.h"
#include "common/exchange/exchange_client.h"
#include "common/optimizer/sparse_gradient.h"
#include "common/tensor/buffer.h"
#include "common/train/device_variables.h"

namespace dtf::train {

// Owns: buffers for the split variables; rows of the sparse ones.
// Borrows: `client` and `kept`, which must outlive this.
// Threads: the client's.
// Blocks: bringWhole(), as the client; while a device copies kept variables.
class ParameterBinding {
 public:
  // `kept`: the variables on devices, which steps then neither read nor write here; null: none.
  ParameterBinding(const arena::ParameterLayout& layout, exchange::ExchangeClient& client,
                   DeviceVariables* kept = nullptr);

  uint32_t variables() const { return static_cast<uint32_t>(places_.size()); }

  // Call it after every pull() or exchange that brought parameters: value() then returns these.
  void gatherValues();
  // Call it after gatherAverages() or bringWhole(): value() then returns the parameters again.
  void gatherAgain();

  // For a client that brings rows (exchange::ExchangeClient): of sparse variables the next
  // parameters need only the rows in `look_ups`. These have, by variable, the ids of the batch to
  // compute, without gradients; none for a dense variable.
  void wantRows(std::span<const optimizer::LookUp> look_ups);
  // The next parameters need no rows of sparse variables.
  void wantNoRows();
  // Makes value() return all parameters, as the ps hold them now, until the next gatherAgain(). No
  // effect if it does so already.
  void bringWhole();

  // Call it after a pull() of the moving averages: value() then returns these, until the next
  // gatherAgain().
  void gatherAverages();
  std::span<const float* const> values();
  // Aligned to at least 4 bytes.
  const float* value(uint32_t variable) { return values()[variable]; }

  // Call it after every step: gradients are then of that step.
  void onComputed() { gradients_are_old_ = kept_ != nullptr; }
  // Returns where the step must write the gradient of `variable`, which isn't sparse. May change
  // with every exchange.
  float* gradient(uint32_t variable);
  // Sets the gradient of a sparse variable.
  void setGradient(uint32_t variable, const optimizer::LookUp& look_up);
  // Sets the gradients of a batch without examples: 0, or no row. For a moving average it is the
  // average itself, which doesn't move it.
  void setNoGradients();
  // Returns the whole gradient of `variable`; of a sparse one its rows, one after another.
  std::span<float> gradientValues(uint32_t variable);
  // Writes all gradients to the client's arenas, before every exchange.
  void scatterGradients();
  // Writes one variable's gradient ahead of scatterGradients(). It is final, and not of a sparse
  // variable.
  void scatterGradient(uint32_t variable);

 private:
  struct Part {
    uint32_t ps_task = 0;
    arena::Slice slice;
  };
  struct Place {
    std::vector<Part> parts;  // by Slice::begin; several: the variable is split
    Buffer value;             // of a split variable
    Buffer gradient;          // of a split variable that isn't sparse
    size_t elements = 0;
    bool moves = false;  // a moving average
    std::optional<optimizer::SparseGradient> sparse;
    std::vector<uint32_t> wanted;  // requested rows of a sparse variable
  };
  // The part of the sparse variables on one ps.
  struct SparseShard {
    arena::GradientLayout layout;
    std::vector<uint32_t> variables;              // by sparse slice
    std::vector<uint32_t> first_rows;             // likewise
    std::vector<std::span<const uint32_t>> rows;  // by sparse slice: `pushed`, in their variable
    arena::RowSet pushed, wanted;
  };
  void gather(exchange::Values what, bool only_wanted = false);
  static void copyWanted(Place& place, const arena::Slice& slice, const float* from);
  void sendWanted();
  void bringGradients();
  void addSparseShard(const arena::ParameterLayout& layout, uint32_t ps_task);
  void scatterRows(uint32_t ps_task, SparseShard& shard);
  static bool isSplit(const Place& place) { return place.parts.size() != 1; }

  exchange::ExchangeClient& client_;
  DeviceVariables* const kept_;
  bool wants_rows_ = false;       // the next parameters may have only wanted rows
  bool has_only_wanted_ = false;  // the current parameters may
  bool shows_aside_ = false;      // value() returns averages, or the result of bringWhole()
  // The device has newer ones of kept variables.
  bool values_are_old_ = false, gradients_are_old_ = false;
  std::vector<Place> places_;    // by variable
  std::vector<uint32_t> spare_;  // for optimizer::findRows()
  std::vector<const float*> values_;
  std::vector<SparseShard> sparse_;  // by ps task; empty: no variable is sparse
};

}  // namespace dtf::train
