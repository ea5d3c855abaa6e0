#include "common/base/run_registry.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <optional>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/file.h"
#include "common/base/json.h"
#include "common/base/process_identity.h"

namespace dtf {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t kEntryBytesMax = 65536;

// All users know this name below /tmp, so the folder is checked before it is trusted.
bool isOwnFolder(const fs::path& folder) {
  struct stat info {};
  return ::lstat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
         info.st_uid == ::geteuid() && (info.st_mode & 022) == 0;
}

// Other names are files of a launch that is writing its entry now.
bool isEntryName(const std::string& name) {
  return name.size() == 16 && name.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::optional<KnownRun> readEntry(const fs::path& file) {
  try {
    const auto json = Json::parseOrNull(readFile(file, kEntryBytesMax));
    if (!json.isObject()) return std::nullopt;
    return KnownRun{json.stringOr("cluster_file", ""), json.stringOr("run_dir", ""),
                    json.stringOr("job", ""), json.stringOr("host", "")};
  } catch (const Error&) {  // no file, or a field of another type
    return std::nullopt;
  }
}

// The entries whose run directories are there, newest first.
template <class Predicate>
std::vector<KnownRun> entriesOf(const fs::path& folder, const Predicate& counts) {
  if (!isOwnFolder(folder)) return {};
  std::vector<std::pair<fs::file_time_type, KnownRun>> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (!isEntryName(entry.path().filename().string())) continue;
    std::optional<KnownRun> known = readEntry(entry.path());
    if (known && counts(*known) && fs::exists(known->run_dir, ignored))
      found.emplace_back(entry.last_write_time(ignored), std::move(*known));
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<KnownRun> runs;
  for (auto& [time, run] : found) runs.push_back(std::move(run));
  return runs;
}

// Removes the oldest entries until there is room for one more.
void makeRoom(std::vector<std::pair<fs::file_time_type, fs::path>> entries, size_t entries_max) {
  if (entries.size() < entries_max) return;
  std::sort(entries.begin(), entries.end());
  entries.resize(entries.size() - (entries_max - 1));
  std::error_code ignored;
  for (const auto& [time, file] : entries) fs::remove(file, ignored);
}

bool isOfThisUser(const char* folder) {
  struct stat info {};
  return ::stat(folder, &info) == 0 && info.st_uid == ::geteuid();
}

// Makes the folder, and the ones around it, for this user alone.
void makeOwnFolder(const fs::path& folder) {
  if (::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return;
  if (errno == ENOENT && folder.has_relative_path()) {
    makeOwnFolder(folder.parent_path());
    if (::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return;
  }
  throw Error(ErrorCode::kCannotWrite, "cannot make " + folder.string() + ": " + errnoText(errno));
}

// Of an entry of this host.
bool isObsolete(const KnownRun& known, const KnownRun& fresh) {
  std::error_code ignored;
  return !fs::exists(known.run_dir, ignored) ||
         (known.run_dir == fresh.run_dir &&
          (known.cluster_file == fresh.cluster_file || !fs::exists(known.cluster_file, ignored)));
}

}  // namespace

// absolute() first: weakly_canonical() keeps a relative path relative if its parts don't exist yet.
fs::path registeredPath(const fs::path& path) {
  std::error_code ignored;
  const fs::path absolute = fs::absolute(path).lexically_normal();
  const fs::path real = fs::weakly_canonical(absolute, ignored);
  return ignored ? absolute : real;
}

fs::path RunRegistry::defaultFolder() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  std::error_code ignored;
  if (runtime != nullptr && *runtime == '/' && fs::is_directory(runtime, ignored))
    return fs::path(runtime) / "dtf";
  return "/tmp/dtf-" + std::to_string(::geteuid());
}

std::optional<fs::path> RunRegistry::historyFolder() {
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && *state == '/') {
    fs::path there = state;
    std::error_code ignored;
    while (there.has_relative_path() && !fs::exists(there, ignored)) there = there.parent_path();
    if (!isOfThisUser(there.c_str())) return std::nullopt;
    return fs::path(state) / "dtf/runs";
  }
  const char* const home = std::getenv("HOME");
  if (home == nullptr || *home != '/' || !isOfThisUser(home)) return std::nullopt;
  return fs::path(home) / ".local/state/dtf/runs";
}

RunRegistry::RunRegistry(fs::path folder) : folder_(std::move(folder)) {
  DTF_CHECK_MSG(folder_.is_absolute(), folder_.string());
}

void RunRegistry::remember(const KnownRun& run) {
  DTF_CHECK_MSG(run.cluster_file.is_absolute() && run.run_dir.is_absolute(), run.run_dir.string());
  makeOwnFolder(folder_);
  if (!isOwnFolder(folder_))
    throw Error(ErrorCode::kPermission, folder_.string() + " is not a folder of this user alone");
  // A file that takes over the directory of another one leaves it its entry.
  const std::string key = run.run_dir.string() + '\n' + run.cluster_file.string();
  const std::string name = fmt::format("{:016x}", std::hash<std::string>()(key));
  const std::string host = identityOf(0).host;
  std::error_code ignored;
  std::vector<std::pair<fs::file_time_type, fs::path>> others;
  for (const auto& entry : fs::directory_iterator(folder_, ignored)) {
    const std::string other = entry.path().filename().string();
    if (!isEntryName(other) || other == name) continue;
    const std::optional<KnownRun> known = readEntry(entry.path());
    const bool is_ours = known && (known->host.empty() || known->host == host);
    if (!known || (is_ours && isObsolete(*known, run)))
      fs::remove(entry.path(), ignored);
    else
      others.emplace_back(entry.last_write_time(ignored), entry.path());
  }
  makeRoom(std::move(others), kEntriesMax);
  atomicReplace(folder_ / name, Json{{"schema", 1},
                                     {"cluster_file", run.cluster_file.string()},
                                     {"run_dir", run.run_dir.string()},
                                     {"job", run.job},
                                     {"host", host}}
                                        .dump(2) +
                                    "\n");
}

std::vector<KnownRun> RunRegistry::all() const {
  return entriesOf(folder_, [](const KnownRun&) { return true; });
}

std::vector<KnownRun> RunRegistry::runsOf(const fs::path& cluster_file,
                                          const std::string& job) const {
  return entriesOf(folder_, [&](const KnownRun& known) {
    return known.cluster_file == cluster_file && known.job == job;
  });
}

std::optional<KnownRun> RunRegistry::lastIn(const fs::path& run_dir) const {
  const std::vector<KnownRun> runs =
      entriesOf(folder_, [&](const KnownRun& known) { return known.run_dir == run_dir; });
  return runs.empty() ? std::nullopt : std::optional(runs.front());
}

std::string registerRun(const KnownRun& run) {
  std::string warnings;
  const auto add = [&](const fs::path& folder, const char* loss) {
    try {
      RunRegistry(folder).remember(run);
    } catch (const Error& error) {
      warnings += fmt::format("{}{}: {}", warnings.empty() ? "warning: " : "\nwarning: ", loss,
                              error.message());
    }
  };
  add(RunRegistry::defaultFolder(),
      "status, logs and stop will find this job only from this folder");
  if (const std::optional<fs::path> history = RunRegistry::historyFolder())
    add(*history, "dtf-launch runs will list this run only until the next login");
  return warnings;
}

}  // namespace dtf
