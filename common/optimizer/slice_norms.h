#pragma once

// Norms of whole variables, by which lars and lamb scale their updates, measured in parts on any
// threads. A variable's squares are summed in chunks that start at its first element, and the
// chunks in order. So the result has the same bits for every split of the work, and wherever the
// variable lies in its arena.

#include <cstdint>
#include <span>
#include <vector>

#include "common/arena/parameter_layout.h"
#include "common/optimizer/optimizer.h"

namespace dtf::optimizer {

// Owns: its sums.
// Threads: measure() is thread-safe for disjoint ranges; so is update(), after finish().
// Blocks: computes.
class SliceNorms {
 public:
  // `slices` of an arena of `elements`, each a whole variable.
  SliceNorms(std::span<const arena::Slice> slices, uint64_t elements);

  // Sums the chunks that begin in [begin, end). Reads parameters, gradients and slots, perhaps
  // beyond `end`; changes none.
  void measure(const UpdateConstants& constants, const UpdateArrays& arrays, uint64_t begin,
               uint64_t end);

  // Computes the trust ratios, when all of [0, elements) has been measured.
  void finish(const UpdateConstants& constants);

  // Calls updateRange() with the trust ratio of each element's variable.
  void update(const UpdateConstants& constants, const UpdateArrays& arrays, uint64_t begin,
              uint64_t end) const;

 private:
  // A variable and the padding behind it.
  struct Segment {
    uint64_t begin = 0;  // in the arena
    uint64_t end = 0;    // of the variable
    uint64_t next = 0;   // where the next segment begins
    size_t first_chunk = 0;
    float trust_ratio = 1;
  };
  struct Sums {
    double parameters = 0;
    double updates = 0;  // lars: of the gradient; lamb: of the direction
  };
  // Returns the index of the segment that holds `element`.
  size_t segmentOf(uint64_t element) const;

  std::vector<Segment> segments_;  // by begin, covering the arena
  std::vector<Sums> chunks_;
};

// Returns a variable's factor from the norms of its parameters and its update.
float trustRatio(const UpdateConstants& constants, double parameter_norm, double update_norm);

}  // namespace dtf::optimizer
