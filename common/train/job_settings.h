#pragma once

// Settings in which all workers of a job must agree, beside the fields of a declaration. They are
// names and values, which a ps compares when workers declare, and which a checkpoint keeps.

#include <string>
#include <vector>

#include "common/arena/model_declaration.h"
#include "common/cluster/spec.h"
#include "common/data/dataset.h"
#include "common/runtime/compiled_step.h"

namespace dtf::train {

// Returns the input, the layers with all their settings, the loss, the data, their seed and the
// batch size, whether convolutions may use Winograd's algorithm, and the way of each kernel that
// has several. `plan`: of the training step.
// "data.train" has the number and the shape of the examples. "data.train: content" is the XXH3-64
// of all examples in memory, so no file is read again; a gigabyte takes a tenth of a second.
std::vector<arena::Setting> jobSettings(const cluster::TrainSpec& train,
                                        const data::Dataset& dataset,
                                        const runtime::StepPlan& plan);

// Returns "600 examples of [28, 28, 1], content 1f3a...", with the checksum of "data.train:
// content".
std::string datasetText(const data::Dataset& dataset);

}  // namespace dtf::train
