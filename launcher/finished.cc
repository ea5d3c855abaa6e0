#include "launcher/finished.h"

#include <fmt/core.h>

#include <filesystem>

#include "common/base/error.h"
#include "common/base/file.h"
#include "common/base/file_system.h"
#include "common/base/job_summary.h"
#include "common/base/json.h"
#include "common/base/print.h"
#include "common/base/run_lock.h"
#include "common/data/data_files.h"
#include "common/train/finished_run.h"
#include "common/yaml/yaml_tree.h"
#include "launcher/json_fields.h"
#include "launcher/live_status.h"
#include "launcher/output.h"

namespace dtf::launcher {

namespace {

namespace fs = std::filesystem;

constexpr uint64_t kJobFileBytesMax = uint64_t{64} << 20;

// The tree of the key `train`; nullopt: there is none, or the text can't be read.
std::optional<yaml::YamlNode> trainTreeOf(const std::string& text) {
  yaml::Report report;
  const std::optional<yaml::YamlNode> root =
      yaml::parseYaml(text, report.addFile("job.yaml", text), report);
  const yaml::YamlNode* const train = root && report.empty() ? root->find("train") : nullptr;
  return train == nullptr ? std::nullopt : std::optional(*train);
}

// Of a map the order doesn't matter.
bool areSameTrees(const yaml::YamlNode& one, const yaml::YamlNode& other) {
  if (one.kind != other.kind || one.quoted != other.quoted || one.text != other.text ||
      one.children.size() != other.children.size())
    return false;
  for (size_t i = 0; i < one.children.size(); ++i) {
    const yaml::YamlNode* const same =
        one.isMap() ? other.find(one.children[i].key) : &other.children[i];
    if (same == nullptr || !areSameTrees(one.children[i], *same)) return false;
  }
  return true;
}

bool isOlder(const cluster::DatasetSpec& dataset, fs::file_time_type than) {
  const data::DataFiles all = data::filesOf(dataset);
  for (const auto* const paths : {&all.files, &all.folders})
    for (const fs::path& path : *paths)
      if (fs::last_write_time(path) > than) return false;
  return true;
}

// Returns whether the job and its data are those of the run: the chief of that run has written
// job.yaml. Where they differ, or nobody can know, the tasks find out what is left to do.
bool isUnchanged(const cluster::JobSpec& job) {
  const fs::path file = job.run_dir / "job.yaml";
  try {
    const std::string text = readFile(file, kJobFileBytesMax);
    if (!trainsTheSame(text, job.text)) return false;
    const fs::file_time_type written = fs::last_write_time(file);
    const cluster::DataSpec& data = job.train->data;
    return isOlder(data.train, written) && (!data.eval || isOlder(*data.eval, written));
  } catch (const Error&) {
    return false;
  } catch (const fs::filesystem_error&) {
    return false;
  }
}

}  // namespace

bool trainsTheSame(const std::string& one, const std::string& other) {
  const std::optional<yaml::YamlNode> ours = trainTreeOf(one), theirs = trainTreeOf(other);
  return ours && theirs && areSameTrees(*ours, *theirs);
}

// A job that was killed between its last checkpoint and its result has no summary of a done job:
// its tasks then evaluate and report.
std::optional<int> answerFinished(const cluster::JobSpec& job, const Options& options) {
  if (options.fresh || options.dry_run || runningLaunch(job.run_dir)) return std::nullopt;
  const Json summary = readSummary(job.run_dir);
  if (textOf(summary, "outcome") != "done") return std::nullopt;
  if (!job.train || !isUnchanged(job)) return std::nullopt;
  const std::optional<train::FinishedRun> run = train::findFinishedRun(realFileSystem(), job);
  if (!run) return std::nullopt;
  const std::string text = train::finishedText(job, *run);
  if (options.json) {
    printEvent("already_done", {{"job", job.job}, {"step", run->step}, {"message", text}});
    printEvent("summary", summary);
  } else {
    print(
        fmt::format("{}: {}\n  summary    {}\n", job.job, text, summaryFile(job.run_dir).string()));
  }
  return 0;
}

}  // namespace dtf::launcher
