#pragma once

// Whether `data.eval_split` of a job that goes on, or is evaluated, has examples to evaluate that
// were trained: those of a larger share than that of the training.

#include <optional>
#include <string>

#include "common/checkpoint/manifest.h"

namespace dtf::train {

// Returns data.eval_split of the job that saved it, 0 if it had none; nullopt: it is not known.
std::optional<double> trainedSplit(const checkpoint::Manifest& saved);

// Returns "some examples that are evaluated were trained: data.eval_split 0.1 -> 0.3"; empty: none
// were, as far as is known. `split`: 0 for none.
std::string trainedExamplesText(std::optional<double> trained, double split);

}  // namespace dtf::train
