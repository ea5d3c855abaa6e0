// dtf-launch: starts the tasks of a job, watches them, and says how it went.

#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/cluster/cluster_yaml.h"
#include "launcher/commands.h"
#include "launcher/options.h"

namespace dtf::launcher {

namespace {

std::filesystem::path ownFolder() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
}

int run(const Options& options) {
  if (options.verb == Verb::kHelp) return std::fputs(helpText().c_str(), stdout) < 0;
  if (options.verb == Verb::kVersion) return std::puts("dtf-launch " DTF_VERSION) < 0;
  cluster::JobSpec job = cluster::loadCluster(options.cluster_file, options.overrides);
  if (options.run_dir) job.run_dir = *options.run_dir;
  switch (options.verb) {
    case Verb::kCheck:
      return check(job, options);
    case Verb::kStatus:
      return status(job, options);
    case Verb::kLogs:
      return logs(job, options);
    case Verb::kStop:
      return stop(job, options);
    default:
      return up(job, options, ownFolder());
  }
}

}  // namespace

}  // namespace dtf::launcher

int main(int argc, char** argv) {
  try {
    return dtf::launcher::run(
        dtf::launcher::parseOptions(std::vector<std::string>(argv + 1, argv + argc)));
  } catch (const dtf::Error& error) {
    std::fprintf(stderr, "%s\n", error.message().c_str());
    return dtf::exitCode(error.code());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "dtf-launch: internal error: %s\n", error.what());
    return dtf::exitCode(dtf::ErrorCode::kInternal);
  }
}
