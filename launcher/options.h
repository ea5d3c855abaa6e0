#pragma once

// The command line of dtf-launch.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "launcher/console.h"

namespace dtf::launcher {

enum class Verb : uint8_t { kUp, kCheck, kStatus, kLogs, kStop };

struct Options {
  // --help, --help-config or --version: write this to stdout and exit 0; the rest is not set.
  std::optional<std::string> answer;

  Verb verb = Verb::kUp;
  std::filesystem::path cluster_file;
  std::vector<std::string> tasks;                // logs: of these ("worker/1"); empty: of all
  std::vector<std::string> overrides;            // --set, in their order
  std::optional<std::filesystem::path> run_dir;  // instead of the file's
  std::optional<std::filesystem::path> bin_dir;  // where psd and workerd are
  std::optional<std::string> log_level;          // of the tasks
  ColorMode color = ColorMode::kAuto;
  bool fresh = false;
  bool dry_run = false;
  bool json = false;
};

// Errors: kUsage, saying what is wrong and how to read the help.
Options parseOptions(int argc, const char* const* argv);

}  // namespace dtf::launcher
