#include "tests/bench/whole_job.h"

#include <fmt/core.h>

#include <chrono>

#include "common/base/error.h"
#include "tests/bench/child.h"
#include "tests/support/process.h"

namespace dtf::bench {

nlohmann::json runJob(const std::function<std::string(const std::string& folder)>& cluster_text) {
  const testing::TemporaryFolder folder;
  const std::string file = folder.write("bench.yaml", cluster_text(folder.path()));
  const testing::ProcessResult result =
      testing::runProcess({buildProgram("launcher/dtf-launch"), file}, std::chrono::seconds(300));
  if (result.exit_code != 0)
    throw Error(ErrorCode::kInternal,
                fmt::format("dtf-launch exited with {}:\n{}", result.exit_code, result.err));
  return nlohmann::json::parse(folder.read("runs/summary.json"));
}

}  // namespace dtf::bench
