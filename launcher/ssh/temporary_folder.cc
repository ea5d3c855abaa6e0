#include "launcher/ssh/temporary_folder.h"

#include <stdlib.h>

#include <cerrno>
#include <string>

#include "common/base/file.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (fs::temp_directory_path() / "dtf-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) failWrite(pattern, errno);  // it is 0700
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace dtf::launcher
