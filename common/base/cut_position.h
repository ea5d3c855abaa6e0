#pragma once

// The one word for how far a job is that ps, checkpoints and training share.

#include <cstdint>
#include <vector>

namespace dtf {

// The position of a cut: of a point in a job that every ps passes (common/ps/cut.h), in numbers.
// sync: {step}. async: for each worker rank, how many of its pushes are in.
using CutPosition = std::vector<uint64_t>;

}  // namespace dtf
