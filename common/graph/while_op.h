#pragma once

// The roles of a While's inputs and outputs, for its shape function, its gradient and its kernels.
// The op is described in standard_control_ops.cc.

#include <cstddef>
#include <cstdint>

#include "common/graph/graph.h"

namespace dtf::graph {

// Value type.
struct WhileOp {
  size_t inputs = 0;
  size_t carried = 0, sequences = 0, stacked = 0, summed = 0;
  int64_t max_iterations = 0;
  bool reverse = false, counted = false, keep_carried = false;

  // Derives the counts from a While's attributes and its number of inputs.
  static WhileOp of(const Attributes& attributes, size_t inputs);

  // Indices of inputs. Inputs from firstCaptured() on are captured.
  size_t firstCarried() const { return counted ? 1 : 0; }
  size_t firstSequence() const { return firstCarried() + carried; }
  size_t firstCaptured() const { return firstSequence() + sequences; }
  size_t captured() const { return inputs - firstCaptured(); }

  // Indices of outputs; the carried outputs come first.
  size_t iterations() const { return carried; }
  size_t firstStacked() const { return carried + 1; }
  size_t firstSummed() const { return firstStacked() + stacked; }
  size_t firstKept() const { return firstSummed() + summed; }
};

}  // namespace dtf::graph
