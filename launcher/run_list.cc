#include "launcher/run_list.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include "common/base/error.h"
#include "common/base/run_registry.h"
#include "common/base/text.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

namespace {

constexpr size_t kFoldersMax = 10'000;  // looked at in one folder
constexpr size_t kCandidatesMax = 10;   // named in a message
constexpr std::string_view kRunsFolder = "runs";

// The run directories, with the file of the last launch in each; empty if it is not known.
using Candidates = std::map<fs::path, fs::path>;

void addRunsIn(const fs::path& folder, Candidates& found) {
  if (isRun(folder)) found.try_emplace(registeredPath(folder));
  std::error_code ignored;
  size_t seen = 0;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (++seen > kFoldersMax) break;
    if (isRun(entry.path())) found.try_emplace(registeredPath(entry.path()));
  }
}

// The runs of this login come first, each registry from its newest run on.
std::vector<KnownRun> registeredRuns() {
  std::vector<KnownRun> runs = RunRegistry().all();
  if (const std::optional<fs::path> folder = RunRegistry::historyFolder())
    for (KnownRun& run : RunRegistry(*folder).all()) runs.push_back(std::move(run));
  return runs;
}

Candidates candidatesIn(const std::vector<fs::path>& folders) {
  Candidates found;
  for (const fs::path& folder : folders) {
    std::error_code ignored;
    if (!fs::is_directory(folder, ignored))
      throw Error(ErrorCode::kUsage, "runs: there is no folder " + folder.string());
    addRunsIn(folder, found);
    addRunsIn(folder / kRunsFolder, found);
  }
  return found;
}

std::vector<RunFacts> factsOf(const Candidates& candidates) {
  std::vector<RunFacts> runs;
  for (const auto& [folder, file] : candidates) {
    runs.push_back(readRun(folder));
    runs.back().cluster_file = file;
  }
  std::stable_sort(runs.begin(), runs.end(), [](const RunFacts& one, const RunFacts& other) {
    return one.started > other.started;  // an unknown start is the oldest
  });
  return runs;
}

[[noreturn]] void failAmbiguous(const std::string& name, const std::vector<RunFacts>& runs) {
  std::string text =
      fmt::format("'{}' means {} runs: name one by its id or folder", name, runs.size());
  for (size_t i = 0; i < std::min(runs.size(), kCandidatesMax); ++i)
    text += fmt::format("\n  {}  {}  {}", runs[i].id, runs[i].job, runs[i].folder.string());
  if (runs.size() > kCandidatesMax) text += "\n  ...";
  throw Error(ErrorCode::kUsage, text);
}

[[noreturn]] void failNone(const std::string& name, const std::vector<RunFacts>& runs) {
  std::vector<std::string_view> jobs;
  for (const RunFacts& run : runs) jobs.push_back(run.job);
  const std::string near = nearestWord(name, jobs);
  throw Error(ErrorCode::kUsage,
              fmt::format("'{}' is no run directory, no job that has run, and no beginning of an "
                          "id{}: 'dtf-launch runs' lists the runs",
                          name, near.empty() ? "" : " - did you mean '" + near + "'?"));
}

}  // namespace

std::vector<RunFacts> listRuns(const std::vector<fs::path>& folders) {
  Candidates found = candidatesIn(folders);
  const bool is_everything = folders.empty();
  if (is_everything) addRunsIn(kRunsFolder, found);
  if (is_everything && isRun(".")) found.try_emplace(registeredPath("."));
  for (const KnownRun& run : registeredRuns()) {
    if (!found.contains(run.run_dir) && !(is_everything && isRun(run.run_dir))) continue;
    fs::path& file = found[run.run_dir];
    if (file.empty()) file = run.cluster_file;
  }
  return factsOf(found);
}

RunFacts runNamed(const std::string& name) {
  if (isRun(name)) return readRun(name);
  const std::vector<RunFacts> all = listRuns({});
  std::vector<RunFacts> exact, begun;
  for (const RunFacts& run : all) {
    if (run.job == name || run.id == name)
      exact.push_back(run);
    else if (!name.empty() && (run.job.starts_with(name) || run.id.starts_with(name)))
      begun.push_back(run);
  }
  const std::vector<RunFacts>& meant = exact.empty() ? begun : exact;
  if (meant.empty()) failNone(name, all);
  if (meant.size() > 1) failAmbiguous(name, meant);
  return meant.front();
}

}  // namespace dtf::launcher
