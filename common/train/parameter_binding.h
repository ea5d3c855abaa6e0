#pragma once

// Where a step finds its variables and leaves its gradients. A variable that lies whole on one ps
// is used in place: its value in the arena that was received, its gradient in the arena that will
// be sent. A variable that is split over several ps gets a buffer of its own, filled after a pull
// and taken apart before a push.

#include <cstdint>
#include <span>
#include <vector>

#include "common/ps/parameter_client.h"
#include "common/ps/parameter_layout.h"
#include "common/tensor/buffer.h"

namespace dtf::train {

// Owns: buffers for the split variables.
// Borrows: `client`, which must outlive this.
// Threads: that of the client.
// Blocks: never.
class ParameterBinding {
 public:
  ParameterBinding(const ps::ParameterLayout& layout, ps::ParameterClient& client);

  uint32_t variables() const { return static_cast<uint32_t>(places_.size()); }

  // After every pull() or exchange() that brought parameters: value() is of them from now on.
  void gatherValues();
  // After a pullAverages(): value() is of the moving averages, until the next gatherValues().
  void gatherAverages();
  std::span<const float* const> values() const { return values_; }
  const float* value(uint32_t variable) const {
    return values_[variable];
  }  // aligned to 4 bytes at least

  // Where the step must write the gradient of `variable`. May change with every exchange().
  float* gradient(uint32_t variable);
  // Before every exchange().
  void scatterGradients();

 private:
  struct Part {
    uint32_t ps_task = 0;
    ps::Slice slice;
  };
  struct Place {
    std::vector<Part> parts;  // by Slice::begin; several: the variable is split
    Buffer value;             // of a split variable
    Buffer gradient;
  };
  using Arena = const float* (ps::ParameterClient::*)(uint32_t ps_task) const;
  void gather(Arena arena);
  static bool isSplit(const Place& place) { return place.parts.size() != 1; }

  ps::ParameterClient& client_;
  std::vector<Place> places_;  // by variable
  std::vector<const float*> values_;
};

}  // namespace dtf::train
