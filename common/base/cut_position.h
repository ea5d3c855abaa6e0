#pragma once

// The progress of a job, in the one form that ps, checkpoints and training share.

#include <cstdint>
#include <vector>

namespace dtf {

// The position of a cut, a point in a job that every ps passes (common/replication/cut.h).
// sync: {step}. async: the number of pushes applied, by worker rank.
using CutPosition = std::vector<uint64_t>;

}  // namespace dtf
