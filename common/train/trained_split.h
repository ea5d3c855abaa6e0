#pragma once

// Whether `data.eval_split` of a job that goes on, or is evaluated, has examples to evaluate that
// were trained: those of a larger share than that of the training, or of one chosen another way.

#include <optional>
#include <span>
#include <string>

#include "common/arena/model_declaration.h"
#include "common/checkpoint/manifest.h"
#include "common/cluster/data_spec.h"

namespace dtf::train {

// The way in which a job divides its data. Value type.
struct SplitSetting {
  double fraction = 0;  // 0: it doesn't
  std::string by = {};  // "time COLUMN" or "group COLUMN"; empty: the checksum of an example
  bool operator==(const SplitSetting&) const = default;
};

// Returns the setting of a data set, and of the jobSettings() of a job.
SplitSetting splitSettingOf(const cluster::DatasetSpec& data);
SplitSetting splitSettingOf(std::span<const arena::Setting> settings);

// Returns the setting of the job that saved it; nullopt: it is not known.
std::optional<SplitSetting> trainedSplit(const checkpoint::Manifest& saved);

// Returns "some examples that are evaluated were trained: data.eval_split 0.1 -> 0.3", and the ways
// if they differ: "0.1 by hash -> 0.1 by time day". Empty: none were, as far as is known.
std::string trainedExamplesText(const std::optional<SplitSetting>& trained,
                                const SplitSetting& split);

}  // namespace dtf::train
