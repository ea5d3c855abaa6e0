#pragma once

// Finds the daemons that a launch runs.

#include <filesystem>
#include <optional>
#include <string>

namespace dtf::launcher {

// Where the daemons are.
struct Binaries {
  std::filesystem::path psd;
  std::filesystem::path workerd;
};

// Looks for psd and workerd in `bin_dir` (also of a build tree: build) when one is given; else
// beside dtf-launch (`own_folder`), then in `own_folder`/../daemons (a build tree), then in the
// folders of `path` (the value of PATH).
// Errors: kBadConfig naming the places that were searched and how to get the binaries.
Binaries findBinaries(const std::optional<std::filesystem::path>& bin_dir,
                      const std::filesystem::path& own_folder, const std::string& path);

// dtf-agent, beside dtf-launch or in `bin_dir`, to be copied to other hosts.
// Errors: kBadConfig, as findBinaries().
std::filesystem::path findAgent(const std::optional<std::filesystem::path>& bin_dir,
                                const std::filesystem::path& own_folder);

}  // namespace dtf::launcher
