#pragma once

// The settings of runs, from the job.yaml that the chief writes into each run directory, and the
// settings in which runs differ.

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace dtf::launcher {

// By key path: "train.model.layers[1].dense.units" -> "10". A list of plain values is one value:
// "[28, 28, 1]". "data.train", "data.train content" and the like describe the examples that the
// chief has read.
using RunSettings = std::map<std::string, std::string>;

// Returns the settings in the text of a job.yaml; nullopt if it can't be read. Left out are `job`
// and `run_dir`, which name the run, and the ports of tasks, which are chosen anew for each launch.
std::optional<RunSettings> settingsIn(const std::string& text);

// Returns the settings of the run in `folder`; nullopt without a job.yaml that can be read.
// Blocks: on the disk.
std::optional<RunSettings> readSettings(const std::filesystem::path& folder);

// A setting that is not the same in all runs. Value type.
struct SettingDifference {
  std::string key;
  std::vector<std::optional<std::string>> values;  // of each run; nullopt: its file lacks the key
};

// Returns the differences, by key.
std::vector<SettingDifference> differencesOf(std::span<const RunSettings> runs);

}  // namespace dtf::launcher
