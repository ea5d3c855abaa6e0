#include "launcher/last_words.h"

#include <unistd.h>

#include "common/base/error.h"
#include "common/base/job_summary.h"
#include "launcher/output.h"
#include "launcher/report.h"

namespace dtf::launcher {

namespace {

void reportFailure(const EndedJob& job, const RootCause& root) {
  FailureDetails details;
  if (root.task) {
    details.last_lines = job.logs.tail(*root.task);
    details.log = job.logs.file(*root.task);
    details.host = otherHostOf(job.job, job.monitor.id(*root.task));
  }
  details.restarts = job.monitor.restartHistory();
  details.out_of_memory = job.out_of_memory;
  printBounded(STDERR_FILENO, failureReport(job.job.job, root, details));
}

}  // namespace

int sayLastWords(const EndedJob& job, EventWriter* events, const Json& summary) {
  Remains remains = remainsOf(job.job, summary, job.run_dir);
  remains.earlier_summary = job.earlier_summary;
  const bool told = events != nullptr
                        ? events->summary(summary)
                        : printBounded(STDOUT_FILENO, resultReport(summary, job.run_dir, remains));
  // Last, so that on a terminal the remedy is above the prompt.
  if (job.monitor.rootCause()) reportFailure(job, *job.monitor.rootCause());
  const auto exit_code = summary["exit_code"].asInt();
  if (told) return exit_code;
  printBounded(STDERR_FILENO, "dtf-launch: error: cannot write the result to stdout; it is in " +
                                  summaryFile(job.run_dir).string() + "\n");
  return exit_code == 0 ? exitCode(ErrorCode::kCannotWrite) : exit_code;
}

}  // namespace dtf::launcher
