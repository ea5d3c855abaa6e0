#include "common/cluster/file_pattern.h"

#include <fnmatch.h>

#include <algorithm>
#include <system_error>

#include "common/yaml/sent_files.h"

namespace dtf::cluster {

namespace fs = std::filesystem;

namespace {

bool isHidden(const std::string& name) {
  return name.starts_with('.') || name.starts_with('_');
}

}  // namespace

// A copy may be elsewhere, under the same names.
std::vector<fs::path> filesOf(const fs::path& path, std::string& wrong) {
  wrong.clear();
  const fs::path place = yaml::placeOfData(path);
  std::error_code error;
  if (fs::is_regular_file(place, error)) return {path};  // whatever its name
  const bool is_folder = fs::is_directory(place, error);
  const std::string pattern = is_folder ? "*" : path.filename().string();
  if (!is_folder && pattern.find_first_of("*?[") == std::string::npos) return {path};
  const fs::path folder = is_folder ? path : path.parent_path();
  const fs::path listed = yaml::placeOfData(folder.empty() ? "." : folder);
  error.clear();
  std::vector<fs::path> files;
  for (fs::directory_iterator entry(listed, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    std::error_code gone;
    if (!isHidden(name) && ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0 &&
        entry->is_regular_file(gone))
      files.push_back((folder / name).lexically_normal());
  }
  if (error && error != std::errc::no_such_file_or_directory)
    wrong = "cannot list " + listed.string() + ": " + error.message();
  if (error || files.empty()) return {path};
  std::ranges::sort(files);
  return files;
}

}  // namespace dtf::cluster
