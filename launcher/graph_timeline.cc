#include "launcher/graph_timeline.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "common/base/file.h"
#include "launcher/output.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

namespace {

// As a compiler says where its error is.
Error errorAt(const fs::path& file, ErrorCode code, const std::string& what) {
  return with(ErrorTrait::kHasPlace, Error(code, file.string() + ": error: " + what));
}

// Whether atomicReplace() will find its way, as far as that can be known before.
void checkWritable(const fs::path& file) {
  std::error_code error;
  if (!file.has_filename() || fs::is_directory(file, error))
    throw errorAt(file, ErrorCode::kCannotWrite, "the timeline is a file, and this is a folder");
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  if (!fs::is_directory(folder, error))
    throw errorAt(file, ErrorCode::kCannotWrite,
                  "there is no folder " + folder.string() + "; make it, or name another");
  if (::access(folder.c_str(), W_OK | X_OK) == 0) return;
  const ErrorCode code =
      errno == EACCES || errno == EPERM ? ErrorCode::kPermission : ErrorCode::kCannotWrite;
  throw errorAt(file, code, "cannot write in " + folder.string() + ": " + errnoText(errno));
}

int64_t stepOf(const fs::path& file, std::optional<int64_t> wanted, int64_t steps) {
  const int64_t step = wanted.value_or(std::min<int64_t>(2, steps));
  if (step < 1 || step > steps)
    throw errorAt(file, ErrorCode::kUsage,
                  fmt::format("--timeline-step {}: the graph has the steps 1 to {}", step, steps));
  return step;
}

}  // namespace

GraphTimeline::GraphTimeline(fs::path file, std::optional<int64_t> wanted, int64_t steps)
    : file_(std::move(file)), wanted_(wanted), steps_(steps), step_(stepOf(file_, wanted, steps)) {
  checkWritable(file_);
}

void GraphTimeline::startAfter(int64_t done) {
  DTF_CHECK(done >= 0 && !is_written_);
  const int64_t left = steps_ - done;
  step_ = done + wanted_.value_or(std::clamp<int64_t>(left, 1, 2));
}

void GraphTimeline::write(int64_t step, std::span<const trace::TaskTrace> tasks) {
  for (const trace::TaskTrace& task : tasks)
    if (!task.is_given)
      printBounded(STDERR_FILENO, fmt::format("dtf-launch: warning: {} isn't in the timeline: its "
                                              "version of dtf doesn't record steps\n",
                                              task.task.name()));
  is_written_ = true;
  try {
    atomicReplace(file_, trace::timelineJson(static_cast<uint64_t>(step), tasks));
  } catch (const Error& error) {
    failed_ = errorAt(file_, error.code(), error.message());
  }
}

void GraphTimeline::finish() const {
  if (failed_) throw Error(*failed_);
  if (!is_written_)
    throw errorAt(
        file_, ErrorCode::kUsage,
        fmt::format("no step was recorded: the run has ended before step {}, and 'steps' is "
                    "{}; raise it, or start anew with --fresh",
                    step_, steps_));
}

}  // namespace dtf::launcher
