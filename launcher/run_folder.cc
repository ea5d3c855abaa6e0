#include "launcher/run_folder.h"

#include <unistd.h>

#include "common/base/job_summary.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

RunFolder::RunFolder(fs::path folder) : folder_(folder), lock_(folder, {"", ::getpid(), {}}) {
  makeWritableFolder(logs());
  removeSummary(folder_);
}

}  // namespace dtf::launcher
