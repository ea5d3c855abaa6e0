// dtf-launch runs: the runs of the user, with their state and result.

#include <fmt/core.h>

#include <algorithm>

#include "common/base/print.h"
#include "common/base/text.h"
#include "common/base/text_table.h"
#include "common/base/wall_time.h"
#include "launcher/commands.h"
#include "launcher/output.h"
#include "launcher/progress.h"
#include "launcher/run_list.h"

namespace dtf::launcher {

namespace {

constexpr size_t kRunRowsMax = 50;  // for people; --json prints all

std::string stepsText(const RunFacts& run) {
  if (!run.step) return "-";
  if (!run.steps) return std::to_string(*run.step);
  return fmt::format("{}/{}", *run.step, *run.steps);
}

// "2026-03-01 10:11"
std::string startedText(const RunFacts& run) {
  if (!run.started) return "-";
  std::string text = wallTimeText(*run.started).substr(0, 16);
  text[10] = ' ';
  return text;
}

std::vector<std::string> rowOf(const RunFacts& run) {
  const std::string metrics = metricsText(run);
  return {run.id,
          run.job,
          run.state,
          startedText(run),
          run.seconds ? durationText(*run.seconds) : "-",
          stepsText(run),
          run.loss ? countText(*run.loss) : "-",
          metrics.empty() ? "-" : metrics,
          run.checkpoint ? fmt::format("step {}", *run.checkpoint) : "-",
          run.folder.string()};
}

std::string tableOf(const std::vector<RunFacts>& runs) {
  if (runs.empty())
    return "no runs: 'dtf-launch CLUSTER.yaml' makes one; 'dtf-launch runs FOLDER' looks in a "
           "folder\n";
  std::vector<std::vector<std::string>> rows = {{"ID", "JOB", "STATE", "STARTED", "TIME", "STEPS",
                                                 "LOSS", "METRICS", "CHECKPOINT", "FOLDER"}};
  const size_t shown = std::min(runs.size(), kRunRowsMax);
  for (size_t i = 0; i < shown; ++i) rows.push_back(rowOf(runs[i]));
  std::string text = alignedText(rows);
  if (shown < runs.size())
    text += fmt::format("{} older: dtf-launch runs --json prints all\n",
                        amountText(runs.size() - shown, "run"));
  return text;
}

}  // namespace

int runs(const Options& options) {
  const std::vector<RunFacts> found = listRuns({options.runs.begin(), options.runs.end()});
  if (options.json)
    for (const RunFacts& run : found) printEvent("run", runJson(run));
  else
    print(tableOf(found));
  return 0;
}

}  // namespace dtf::launcher
