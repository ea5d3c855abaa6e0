#include "common/cluster/file_pattern.h"

#include <fnmatch.h>

#include <algorithm>
#include <system_error>

namespace dtf::cluster {

namespace fs = std::filesystem;

namespace {

bool isHidden(const std::string& name) {
  return name.starts_with('.') || name.starts_with('_');
}

}  // namespace

std::vector<fs::path> filesOf(const fs::path& path) {
  std::error_code error;
  if (fs::is_regular_file(path, error)) return {path};  // whatever its name
  const bool is_folder = fs::is_directory(path, error);
  const std::string pattern = is_folder ? "*" : path.filename().string();
  if (!is_folder && pattern.find_first_of("*?[") == std::string::npos) return {path};
  const fs::path folder = is_folder ? path : path.parent_path();
  std::vector<fs::path> files;
  for (fs::directory_iterator entry(folder.empty() ? "." : folder, error), end;
       !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    std::error_code gone;
    if (!isHidden(name) && ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0 &&
        entry->is_regular_file(gone))
      files.push_back((folder / name).lexically_normal());
  }
  if (error || files.empty()) return {path};
  std::ranges::sort(files);
  return files;
}

}  // namespace dtf::cluster
