#include "launcher/keys_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "common/base/core_files.h"
#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/net/tls_keys.h"
#include "launcher/launch_plan.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

namespace {

constexpr size_t kTasksNamedMax = 8;  // of tasks in a message

std::vector<std::string> tasksThatNeedKeys(
    const cluster::JobSpec& job, const std::function<bool(const cluster::Address&)>& runs_here) {
  const bool are_sent = job.launch.byAgents();
  std::vector<std::string> names;
  for (const JobKind kind : {JobKind::kPs, JobKind::kWorker}) {
    const std::vector<cluster::TaskSpec>& tasks = job.cluster.tasks(kind);
    for (uint32_t i = 0; i < tasks.size(); ++i)
      if (are_sent || runs_here(tasks[i].address)) names.push_back(TaskId{kind, i}.name());
  }
  return names;
}

std::string fileOf(const cluster::JobSpec& job) {
  return shellQuote(job.mark.file);
}

// "DIR has no key of worker/2: dtf-launch keys issue DIR worker/2 makes it".
std::string missingText(const cluster::JobSpec& job, const std::vector<std::string>& tasks) {
  const std::vector<std::string> named(
      tasks.begin(),
      tasks.begin() + static_cast<ptrdiff_t>(std::min(tasks.size(), kTasksNamedMax)));
  const std::string more =
      tasks.size() > named.size() ? fmt::format(" and {} more", tasks.size() - named.size()) : "";
  return fmt::format(
      "{0} has no key for {1}{2}: make {4} on the host that has the CA's key: dtf-launch keys "
      "issue {0} {3}",
      job.cluster.keys.string(), fmt::join(named, ", "), more,
      more.empty() ? fmt::to_string(fmt::join(named, " ")) : "--cluster " + fileOf(job),
      tasks.size() == 1 ? "it" : "them");
}

}  // namespace

void checkKeys(const cluster::JobSpec& job, const yaml::Mark& named,
               const std::function<bool(const cluster::Address&)>& runs_here,
               yaml::Report& report) {
  const fs::path& folder = job.cluster.keys;
  if (folder.empty()) return;
  leaveNoCoreFiles();
  const yaml::Place place = report.placeOf(named);
  std::error_code problem;  // what can't be looked at is said by who opens it
  if (!fs::is_directory(folder, problem) &&
      (!problem || problem == std::errc::no_such_file_or_directory))
    return report.error(
        place,
        fmt::format(
            "{0} is not a folder of keys: make one with dtf-launch keys init {0} --cluster {1}",
            folder.string(), fileOf(job)),
        ErrorCode::kBadData);
  std::vector<std::string> missing;
  std::set<std::string> told;  // what is wrong with the CA is so for each task
  for (const std::string& task : tasksThatNeedKeys(job, runs_here)) {
    if (!fs::exists(folder / net::keyFileOf(task), problem) && !problem) {
      missing.push_back(task);
      continue;
    }
    try {
      net::TlsKeys(folder, task, job.job);
    } catch (const Error& error) {
      if (told.insert(error.message()).second) report.error(place, error.message(), error.code());
    }
  }
  if (!missing.empty()) report.error(place, missingText(job, missing), ErrorCode::kBadData);
}

}  // namespace dtf::launcher
