#include "common/yaml/sent_files.h"

#include <cstdlib>

namespace dtf::yaml {

namespace fs = std::filesystem;

namespace {

// Returns an empty path if the variable is not set.
fs::path folderIn(const char* variable) {
  const char* folder = std::getenv(variable);
  return folder == nullptr ? fs::path() : fs::path(folder);
}

}  // namespace

fs::path placeOfFile(const fs::path& path) {
  const fs::path folder = folderIn("DTF_SENT_FILES");
  return folder.empty() ? path : folder / fs::absolute(path).lexically_normal().relative_path();
}

fs::path placeOfData(const fs::path& path) {
  const fs::path folder = folderIn("DTF_SENT_DATA");
  if (folder.empty()) return path;
  // operator/ drops `folder` before an absolute path.
  const fs::path whole = fs::absolute(folderIn("DTF_STARTED_IN") / path);
  return folder / whole.lexically_normal().relative_path();
}

}  // namespace dtf::yaml
