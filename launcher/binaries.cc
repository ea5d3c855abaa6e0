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

fs::path findBinary(const std::string& name, const std::vector<std::string>& folders,
                    const std::vector<std::string>& path_folders) {
  for (const auto* list : {&folders, &path_folders}) {
    for (const std::string& folder : *list) {
      // Installed beside us, in a build tree's folder of its own, or below the build tree itself.
      const fs::path here(folder);
      for (const fs::path& file : {here / name, here / name / name, here / "daemons" / name / name})
        if (isExecutable(file)) return fs::absolute(file).lexically_normal();
    }
  }
  throw Error(ErrorCode::kBadConfig, "cannot find the executable '" + name + "' in " +
                                         join(folders, ", ") +
                                         (path_folders.empty() ? "" : ", nor in PATH") +
                                         "\n  build it (ninja -C build), install dtf, or name its "
                                         "folder: with --bin-dir DIR, over "
                                         "ssh with launch.binary_dir");
}

}  // namespace

Binaries findBinaries(const std::optional<fs::path>& bin_dir, const fs::path& own_folder,
                      const std::string& path) {
  std::vector<std::string> folders, path_folders;
  if (bin_dir) {
    folders.push_back(bin_dir->string());
  } else {
    folders = {own_folder.string(), (own_folder.parent_path() / "daemons").string()};
    for (const std::string& folder : split(path, ':'))
      if (!folder.empty()) path_folders.push_back(folder);
  }
  return Binaries{findBinary("psd", folders, path_folders),
                  findBinary("workerd", folders, path_folders)};
}

fs::path findAgent(const std::optional<fs::path>& bin_dir, const fs::path& own_folder) {
  const fs::path folder = bin_dir.value_or(own_folder);
  for (const fs::path& file : {folder / "dtf-agent", folder / "launcher" / "dtf-agent"})
    if (isExecutable(file)) return fs::absolute(file).lexically_normal();
  throw Error(ErrorCode::kBadConfig,
              "cannot find dtf-agent in " + folder.string() +
                  ", to be copied to other hosts\n  build it (ninja -C build), install dtf, or "
                  "name the build folder with --bin-dir DIR");
}

}  // namespace dtf::launcher
