#pragma once

// What the chief does first, from what every ps says that it holds. A ps that was ended and started
// again holds nothing, while the others hold trained values: to train on would mix two histories
// of one model without a word.

#include <cstdint>
#include <optional>
#include <vector>

#include "common/checkpoint/checkpoint_client.h"

namespace dtf::train {

enum class JobStart : uint8_t {
  kInitialise = 1,  // the ps take initial values; those that have them already keep them
  kRestore = 2,     // all take the checkpoint
  kContinue = 3,    // all hold the values of an earlier process of the chief
};

// `checkpoint_step`: of the newest whole checkpoint; nullopt: there is none.
// Errors: kBadData naming the ps that have lost their values, when nothing holds them, or when the
// others would have to go back to the checkpoint, which this version can't do while they run.
JobStart decideStart(const std::vector<checkpoint::HeldValues>& held,
                     std::optional<uint64_t> checkpoint_step);

}  // namespace dtf::train
