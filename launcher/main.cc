// dtf-launch: starts the tasks of a job, watches them, and says how it went.

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/notify.h"
#include "common/cluster/cluster_yaml.h"
#include "common/cluster/report.h"
#include "common/train/host_memory.h"
#include "common/train/job_check.h"
#include "launcher/commands.h"
#include "launcher/options.h"

namespace dtf::launcher {

namespace {

// Started with one of them closed (`>&-`), a log file or a socket would take its number, and its
// output.
void openMissingStreams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd)
    if (::fcntl(fd, F_GETFD) < 0) ::open("/dev/null", O_RDWR);
}

std::filesystem::path ownFolder() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
}

// What only matters to a job that is to run: the other verbs work on one whose data are gone, too.
train::JobSize checkBeforeStart(const cluster::JobSpec& job, cluster::Report& report) {
  const std::optional<train::JobSize> size = train::checkJob(job, train::hostMemory(), report);
  std::fputs(report.warnings().c_str(), stderr);
  report.throwIfAny();
  DTF_CHECK(size.has_value());
  return *size;
}

int run(const Options& options) {
  if (options.answer) return std::fputs(options.answer->c_str(), stdout) < 0 ? 1 : 0;
  cluster::Report report;
  cluster::JobSpec job = cluster::loadCluster(options.cluster_file, options.overrides, report);
  if (options.run_dir) job.run_dir = *options.run_dir;
  switch (options.verb) {
    case Verb::kUp:
      checkBeforeStart(job, report);
      return up(job, options, ownFolder());
    case Verb::kCheck:
      return check(job, checkBeforeStart(job, report), options);
    case Verb::kStatus:
      return status(job, options);
    case Verb::kLogs:
      return logs(job, options);
    case Verb::kStop:
      return stop(job);
  }
  return exitCode(ErrorCode::kInternal);
}

// A mistake in a file starts with its place there, as compilers write it; any other with the
// program's name.
void print(const Error& error) {
  const bool has_place = error.message().find(": error: ") != std::string::npos;
  std::fprintf(stderr, "%s%s%s", has_place ? "" : "dtf-launch: error: ", error.what(),
               error.message().ends_with('\n') ? "" : "\n");
}

}  // namespace

}  // namespace dtf::launcher

int main(int argc, char** argv) {
  using namespace dtf;
  markLaunch();
  launcher::openMissingStreams();
  try {
    return launcher::run(launcher::parseOptions(argc, argv));
  } catch (const Error& error) {
    launcher::print(error);
    return exitCode(error.code());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "dtf-launch: internal error: %s\n", error.what());
    return exitCode(ErrorCode::kInternal);
  }
}
