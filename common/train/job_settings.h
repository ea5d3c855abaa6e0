#pragma once

// What makes two workers' work the same, beside what a declaration has fields for: as names and
// values, which a ps compares when workers declare, and a checkpoint keeps.

#include <string>
#include <vector>

#include "common/cluster/spec.h"
#include "common/data/dataset.h"
#include "common/ps/parameter_client.h"
#include "common/runtime/compiled_step.h"

namespace dtf::train {

// The input, the layers with all their settings, the loss, the data, their seed and the batch size,
// whether convolutions may round as Winograd's do, and which way each kernel goes that has several:
// `plan` is of the training step.
// "data.train" says how many examples of which shape there are; "data.train: content" is XXH3-64 of
// every example in memory, wherever they came from: nothing is read again, and a gigabyte
// takes a tenth of a second.
std::vector<ps::Setting> jobSettings(const cluster::TrainSpec& train, const data::Dataset& dataset,
                                     const runtime::StepPlan& plan);

// Returns "600 examples of [28, 28, 1], content 1f3a...": the checksum is that of the setting
// "data.train: content".
std::string datasetText(const data::Dataset& dataset);

}  // namespace dtf::train
