#include "launcher/run_folder.h"

#include <unistd.h>

namespace dtf::launcher {

namespace fs = std::filesystem;

RunFolder::RunFolder(fs::path folder) : folder_(folder), lock_(folder, {"", ::getpid(), {}}) {
  makeWritableFolder(logs());
  std::error_code ignored;
  fs::remove(summary(), ignored);
}

}  // namespace dtf::launcher
