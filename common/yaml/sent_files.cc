#include "common/yaml/sent_files.h"

#include <cstdlib>

namespace dtf::yaml {

namespace fs = std::filesystem;

fs::path placeOfFile(const fs::path& path) {
  const char* folder = std::getenv("DTF_SENT_FILES");
  if (folder == nullptr || *folder == '\0') return path;
  return fs::path(folder) / fs::absolute(path).lexically_normal().relative_path();
}

}  // namespace dtf::yaml
