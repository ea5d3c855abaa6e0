#pragma once

// Where a step finds its variables and leaves its gradients. A variable that lies whole on one ps
// is used in place: its value in the arena that was received, its gradient in the arena that will
// be sent. A variable that is split over several ps gets a buffer of its own, filled after a pull
// and taken apart before a push. The gradient of a sparse variable is rows, which are dealt out to
// the ps that hold them. What a device keeps (device_variables.h) is brought when somebody asks for
// it.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/ps/gradient_layout.h"
#include "common/ps/parameter_client.h"
#include "common/ps/parameter_layout.h"
#include "common/tensor/buffer.h"
#include "common/train/device_variables.h"
#include "common/train/sparse_gradient.h"

namespace dtf::train {

// Owns: buffers for the split variables; rows of the sparse ones.
// Borrows: `client` and `kept`, which must outlive this.
// Threads: that of the client.
// Blocks: never; while a device copies what it keeps.
class ParameterBinding {
 public:
  // `kept`: the variables, which steps neither read nor write here then; null: they do.
  ParameterBinding(const ps::ParameterLayout& layout, ps::ParameterClient& client,
                   DeviceVariables* kept = nullptr);

  uint32_t variables() const { return static_cast<uint32_t>(places_.size()); }

  // After every pull() or exchange() that brought parameters: value() is of them from now on.
  void gatherValues();
  // After a gatherAverages() or bringWhole(): value() is of the parameters again.
  void gatherAgain();

  // Where the client brings rows (ps::ParameterClient): of sparse variables the next parameters
  // need only have the rows that `look_ups` name, by variable the indices of the batch that will be
  // computed with them, without gradients; none of a dense one.
  void wantRows(std::span<const LookUp> look_ups);
  // Of sparse variables none.
  void wantNoRows();
  // For whoever looks at more than a batch does: value() is of all parameters, as the ps hold them
  // now, until the next gatherAgain(). No effect where it is in any case.
  void bringWhole();

  // After a pullAverages(): value() is of the moving averages, until the next gatherAgain().
  void gatherAverages();
  std::span<const float* const> values();
  // Aligned to 4 bytes at least.
  const float* value(uint32_t variable) { return values()[variable]; }

  // After every step: gradients are of it from now on.
  void onComputed() { gradients_are_old_ = kept_ != nullptr; }
  // Where the step must write the gradient of `variable`, one that isn't sparse. May change with
  // every exchange().
  float* gradient(uint32_t variable);
  // The gradient of a sparse variable.
  void setGradient(uint32_t variable, const LookUp& look_up);
  // In place of a step's, of no examples: 0, or no row. What a moving average is sent is the
  // average itself, which moves it nowhere.
  void setNoGradients();
  // All of the gradient of `variable`; of a sparse one that of its rows, one row after another.
  std::span<float> gradientValues(uint32_t variable);
  // Before every exchange().
  void scatterGradients();
  // Of one variable that isn't sparse, ahead of that: what was bound as its gradient is final.
  void scatterGradient(uint32_t variable);

 private:
  struct Part {
    uint32_t ps_task = 0;
    ps::Slice slice;
  };
  struct Place {
    std::vector<Part> parts;  // by Slice::begin; several: the variable is split
    Buffer value;             // of a split variable
    Buffer gradient;          // likewise, unless it is sparse
    size_t elements = 0;
    bool moves = false;  // a moving average
    std::optional<SparseGradient> sparse;
    std::vector<uint32_t> wanted;  // rows of a sparse variable, where only they are
  };
  // What one ps holds of sparse variables.
  struct SparseShard {
    ps::GradientLayout layout;
    std::vector<uint32_t> variables;              // of each sparse slice
    std::vector<uint32_t> first_rows;             // likewise
    std::vector<std::span<const uint32_t>> rows;  // likewise: that are about to be pushed
    std::vector<uint32_t> counts;                 // of them
    ps::RowSet wanted;
  };
  using Arena = const float* (ps::ParameterClient::*)(uint32_t ps_task) const;
  void gather(Arena arena, bool only_wanted = false);
  static void copyWanted(Place& place, const ps::Slice& slice, const float* from);
  void sendWanted();
  void bringGradients();
  void addSparseShard(const ps::ParameterLayout& layout, uint32_t ps_task);
  void scatterRows(uint32_t ps_task, SparseShard& shard);
  static bool isSplit(const Place& place) { return place.parts.size() != 1; }

  ps::ParameterClient& client_;
  DeviceVariables* const kept_;
  bool wants_rows_ = false;       // of the parameters to come
  bool has_only_wanted_ = false;  // of those that are here
  bool shows_aside_ = false;      // value() is of averages, or of what bringWhole() brought
  bool values_are_old_ = false,
       gradients_are_old_ = false;  // of kept variables: the device has others
  std::vector<Place> places_;       // by variable
  std::vector<uint32_t> spare_;     // of findRows()
  std::vector<const float*> values_;
  std::vector<SparseShard> sparse_;  // by ps task; empty where no variable is sparse
};

}  // namespace dtf::train
