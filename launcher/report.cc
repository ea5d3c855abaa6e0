#include "launcher/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <set>

#include "common/base/text.h"
#include "launcher/console.h"
#include "launcher/json_fields.h"
#include "launcher/launch_plan.h"
#include "launcher/progress.h"

namespace dtf::launcher {

namespace {

constexpr int kKilled = 128 + SIGKILL;

void addRow(std::string& text, std::string_view label, const std::string& value) {
  if (!value.empty()) text += fmt::format("  {:<10} {}\n", label, value);
}

// A number under `key`; "" when the summary has none.
std::string numberText(const Json& summary, const char* key) {
  const std::optional<double> number = numberOf(summary, key);
  return number ? countText(*number) : "";
}

std::string stepsText(const Json& summary) {
  const std::optional<uint64_t> step = countOf(summary, "global_step");
  if (!step) return "";
  const std::string steps = numberText(summary, "steps_per_second");
  const std::string examples = numberText(summary, "examples_per_second");
  std::string text = std::to_string(*step);
  if (!steps.empty()) text += ", " + steps + " steps/s";
  if (!examples.empty()) text += ", " + examples + " examples/s";
  return text;
}

void addMetrics(std::string& text, const Json& summary) {
  const Json* const eval = summary.find("eval");
  if (eval == nullptr || !eval->isObject()) return;
  for (const auto& [metric, value] : eval->members())
    // The training has a loss of its own, a row before.
    if (value.isNumber())
      addRow(text, metric == "loss" ? "eval loss" : metric,
             fmt::format("{:.4f}", value.asDouble()));
}

constexpr std::string_view kGone = "not there: ";  // removed, or never written

std::optional<uint64_t> lastCheckpoint(const Json& summary) {
  const Json* const found = summary.find("checkpoint");
  if (found == nullptr || !found->isObject()) return std::nullopt;
  return countOf(*found, "last_step");
}

std::filesystem::path checkpointOf(const std::filesystem::path& run_dir, uint64_t step) {
  return run_dir / "checkpoints" / ("step-" + std::to_string(step));
}

void addCheckpoint(std::string& text, const Json& summary, const std::filesystem::path& run_dir,
                   bool is_there) {
  const Json* const found = summary.find("checkpoint");
  if (found == nullptr || !found->isObject()) return;
  const bool done = textOf(summary, "outcome") == "done";
  const std::optional<uint64_t> step = lastCheckpoint(summary);
  if (step && !is_there)
    addRow(text, "checkpoint",
           fmt::format("step {}, {}{}", *step, kGone, checkpointOf(run_dir, *step).string()));
  else
    addRow(text, "checkpoint",
           step ? fmt::format("step {}{}", *step, done ? "" : "; the same command goes on from it")
                : "none");
  addRow(text, "degraded", textOf(*found, "degraded"));
}

// "worker/1: compute, 4.2 s in 830 steps"
void addSlowest(std::string& text, const Json& summary) {
  const Json* const found = summary.find("slowest");
  if (found == nullptr || !found->isObject()) return;
  addRow(text, "slowest",
         fmt::format("{}: {}, {} s in {} steps that waited for it",
                     printable(textOf(*found, "worker")), printable(textOf(*found, "phase")),
                     numberText(*found, "seconds"), countOf(*found, "steps").value_or(0)));
}

// The checkpoint that `keep_best` holds.
void addBest(std::string& text, const Json& summary) {
  const Json* const found = summary.find("best");
  if (found == nullptr || !found->isObject()) return;
  const std::optional<uint64_t> step = countOf(*found, "checkpoint");
  if (!step) return;
  const uint64_t evaluated = countOf(*found, "step").value_or(*step);
  const std::string of =
      evaluated == *step ? "" : fmt::format(", from the evaluation at step {}", evaluated);
  const std::string metric = textOf(*found, "metric");
  const std::optional<double> value = numberOf(*found, metric.c_str());
  addRow(text, "best",
         fmt::format("step {}{}{}; eval, predict and export use it with --best", *step,
                     value ? fmt::format(" ({} {:.4f})", metric, *value) : "", of));
}

// "2 of 152 records of the training data, 1 of 50 of the evaluation's: t.csv:3:5: ..."
void addLeftOut(std::string& text, const Json& summary) {
  const Json* const found = summary.find("left_out");
  if (found == nullptr || !found->isObject()) return;
  std::string counts, reason;
  for (const Json::Member& data : found->members()) {
    if (!data.value.isObject()) continue;
    const Json* const reasons = data.value.find("reasons");
    if (reason.empty() && reasons != nullptr && reasons->isArray() && !reasons->empty() &&
        (*reasons)[0].isString())
      reason = printable((*reasons)[0].asString());
    counts += fmt::format("{}{:.0f} of {:.0f} records of {}", counts.empty() ? "" : ", ",
                          data.value.doubleOr("records", 0), data.value.doubleOr("of", 0),
                          data.key == "train" ? "the training data" : "the evaluation's");
  }
  if (!counts.empty()) addRow(text, "left out", counts + ": " + reason);
}

// The words of another process: each line as harmless as a log line, the next ones indented.
std::string indented(const std::string& message, size_t columns) {
  std::string text;
  for (const std::string& line : split(message, '\n'))
    text += (text.empty() ? "" : "\n" + std::string(columns, ' ')) + printable(line);
  return text;
}

std::string_view withoutIndent(std::string_view line) {
  return line.substr(std::min(line.find_first_not_of(' '), line.size()));
}

// Of the last lines of a task's log those that don't repeat its message.
std::vector<std::string> otherLines(const std::vector<std::string>& lines,
                                    const std::string& message) {
  std::set<std::string, std::less<>> repeated;
  for (const std::string& line : split(message, '\n'))
    repeated.emplace(withoutIndent(printable(line)));
  const std::string first = printable(message.substr(0, message.find('\n')));
  std::vector<std::string> others;
  for (const std::string& line : lines) {
    const bool is_failure =
        !first.empty() && line.find(" event=failed ") != line.npos && line.find(first) != line.npos;
    std::string_view text = withoutIndent(line);
    if (text.ends_with('"')) text.remove_suffix(1);
    if (!is_failure && (message.empty() || !repeated.contains(text))) others.push_back(line);
  }
  return others;
}

}  // namespace

Remains remainsOf(const cluster::JobSpec& job, const Json& summary,
                  const std::filesystem::path& run_dir) {
  const auto is_there = [](const std::filesystem::path& path) {
    std::error_code unknown;
    return std::filesystem::exists(path, unknown) || unknown;
  };
  const std::optional<uint64_t> step = lastCheckpoint(summary);
  const bool is_here = !job.launch.byAgents();  // else the chief may be on another host
  return {!step || !is_here || is_there(checkpointOf(run_dir, *step)), is_there(run_dir / "logs"),
          is_there(run_dir / "summary.json"), false, job.savesNothing()};
}

std::string resultReport(const Json& summary, const std::filesystem::path& run_dir,
                         const Remains& remains) {
  std::string text =
      fmt::format("{}: {}\n", summary.stringOr("job", ""), summary.stringOr("outcome", ""));
  addRow(text, "steps", stepsText(summary));
  addRow(text, "loss", numberText(summary, "final_loss"));
  addMetrics(text, summary);
  addSlowest(text, summary);
  if (const std::string why = textOf(summary, "ended_early"); !why.empty())
    addRow(text, "ended", "early: " + printable(why));
  addCheckpoint(text, summary, run_dir, remains.checkpoint);
  if (remains.saves_nothing && textOf(summary, "outcome") != outcomeName(Outcome::kDone))
    addRow(text, "checkpoint", "none: the job has 'checkpoint: none'");
  addBest(text, summary);
  addLeftOut(text, summary);
  addRow(text, "model", textOf(summary, "model"));
  addRow(text, "wall time", fmt::format("{:.1f} s", summary.doubleOr("wall_seconds", 0.0)));
  const auto addPath = [&](std::string_view label, const char* name, bool is_there) {
    addRow(text, label, std::string(is_there ? "" : kGone) + (run_dir / name).string());
  };
  addPath("logs", "logs", remains.logs);
  if (remains.earlier_summary)
    addRow(text, "summary", "of the run before: " + (run_dir / "summary.json").string());
  else
    addPath("summary", "summary.json", remains.summary);
  return text;
}

std::string otherHostOf(const cluster::JobSpec& job, const TaskId& task) {
  if (!job.launch.byAgents()) return "";
  return job.cluster.tasks(task.job).at(task.index).address.host;
}

std::string failureReport(const std::string& job, const RootCause& root,
                          const FailureDetails& details) {
  std::string text = fmt::format("dtf-launch: error: {} failed: {}\n", job, indented(root.what, 2));
  addRow(text, "host", printable(details.host));
  if (root.exit_code == kKilled)
    addRow(
        text, "memory",
        details.out_of_memory
            ? "the kernel's out-of-memory killer was active on this host during the job: give the "
              "task more memory, or run fewer tasks here"
            : "the kernel's out-of-memory killer did not act on this host: someone sent SIGKILL");
  for (const std::string& task : details.restarts) addRow(text, "restarted", task);
  const std::vector<std::string> last_lines = otherLines(details.last_lines, root.message);
  if (!last_lines.empty()) text += "  last lines\n";
  for (const std::string& line : last_lines) text += "    | " + line + "\n";
  if (!details.log.empty()) addRow(text, "next", "less " + shellQuote(details.log.string()));
  addRow(text, "message", indented(root.message, 13));
  return text;
}

std::string resumeText(const RestoredNotice& restored) {
  if (restored.steps > 0 && restored.step >= restored.steps)
    return fmt::format(
        "done already at step {}{} {}{}: nothing to train; --fresh begins anew, more steps (or "
        "epochs, where the file has these) go on",
        restored.step, restored.step > restored.steps ? ", beyond the" : " of", restored.steps,
        restored.step > restored.steps ? " of this file" : "");
  std::string text = fmt::format("going on from the checkpoint of step {}", restored.step);
  if (restored.steps > 0) text += fmt::format(" of {}", restored.steps);
  if (!restored.saved.empty()) text += ", saved " + printable(restored.saved);
  for (const std::string& change : restored.changes)
    text += "\n  changed since then: " + printable(change);
  return text;
}

}  // namespace dtf::launcher
