#include "launcher/binaries.h"

#include <unistd.h>

#include <vector>

#include "common/base/error.h"
#include "common/base/text.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

namespace {

bool isExecutable(const fs::path& file) {
  std::error_code ignored;
  return fs::is_regular_file(file, ignored) && ::access(file.c_str(), X_OK) == 0;
}

fs::path findBinary(const std::string& name, const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    const fs::path file = fs::path(folder) / name;
    if (isExecutable(file)) return fs::absolute(file).lexically_normal();
  }
  throw Error(
      ErrorCode::kBadConfig,
      "cannot find the executable '" + name + "'; searched: " + join(folders, ", ") +
          "\n  build it (ninja -C build), install dtf, or name its folder with --bin-dir DIR");
}

}  // namespace

Binaries findBinaries(const std::optional<fs::path>& bin_dir, const fs::path& own_folder,
                      const std::string& path) {
  std::vector<std::string> folders;
  if (bin_dir) {
    folders.push_back(bin_dir->string());
  } else {
    const fs::path daemons = own_folder.parent_path() / "daemons";
    folders = {own_folder.string(), daemons.string()};
    for (const char* daemon : {"psd", "workerd"}) folders.push_back((daemons / daemon).string());
    for (const std::string& folder : split(path, ':'))
      if (!folder.empty()) folders.push_back(folder);
  }
  return Binaries{findBinary("psd", folders), findBinary("workerd", folders)};
}

}  // namespace dtf::launcher
