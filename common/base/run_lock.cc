#include "common/base/run_lock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/json.h"
#include "common/base/wall_time.h"

namespace dtf {

namespace fs = std::filesystem;

namespace {

constexpr uint64_t kRecordBytesMax = uint64_t{4} << 20;

fs::path recordFile(const fs::path& folder) {
  return folder / "launch.json";
}

int64_t ticksOf(const Json& json) {
  const Json* const start = json.find("start_ticks");
  const bool fits = start != nullptr && start->isUnsigned() && start->asUint64() <= INT64_MAX;
  return fits ? start->asInt64() : 0;
}

bool isTrue(const Json& json, const char* key) {
  const Json* const found = json.find(key);
  return found != nullptr && *found == true;
}

// The record is rewritten in place, since a new file would lose the lock. A reader may see half of
// it; then the readable part counts.
LaunchRecord parseRecord(const std::string& text) {
  LaunchRecord record;
  const Json parsed = Json::parseOrNull(text);
  if (!parsed.isObject()) return record;
  record.job = parsed.stringOr("job", "");
  record.launcher = parsed.intOr("launcher_pid", 0);
  record.program = parsed.stringOr("program", record.program);
  record.attempt = std::max(0, parsed.intOr("attempt", 0));
  record.identity.host = parsed.stringOr("host", "");
  record.identity.boot = parsed.stringOr("boot_id", "");
  record.identity.start_ticks = ticksOf(parsed);
  record.serves = isTrue(parsed, "serves");
  record.already_done = isTrue(parsed, "already_done");
  record.started = parsed.stringOr("started", "");
  const Json* const tasks = parsed.find("tasks");
  if (tasks == nullptr || !tasks->isArray()) return record;
  for (const Json& task : *tasks)
    if (task.isObject())
      record.tasks.push_back({task.stringOr("name", ""), task.intOr("pid", 0),
                              task.stringOr("address", ""), ticksOf(task)});
  return record;
}

// An open-file-description lock on the whole file. It ends with the descriptor and works over NFS.
// Unlike flock() it can be queried without being taken, so `status` never gets in the way of a
// launch.
struct flock wholeFile(short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

[[noreturn]] void failHeld(const fs::path& folder) {
  const LaunchRecord holder = lastLaunch(folder);
  std::string who = "another job";
  if (holder.launcher > 0)
    who = holder.program + ", pid " + std::to_string(holder.launcher) + onHostText(holder);
  if (!holder.job.empty()) who += ", job '" + holder.job + "'";
  throw Error(ErrorCode::kUnavailable,
              "the run directory " + folder.string() + " is in use by " + who +
                  "\n  wait for it, stop it, or name another directory with --run-dir DIR");
}

}  // namespace

std::string onHostText(const LaunchRecord& record) {
  const std::string host = otherHost(record.identity);
  return host.empty() ? "" : " on the host " + host;
}

LaunchRecord lastLaunch(const fs::path& folder) {
  try {
    return parseRecord(readFile(recordFile(folder), kRecordBytesMax));
  } catch (const Error&) {  // no file, or a field of another type
    return {};
  }
}

RunLock::RunLock(fs::path folder, const LaunchRecord& holder)
    : folder_(std::move(folder)), started_(wallTimeText()) {
  DTF_CHECK(!folder_.empty());
  makeWritableFolder(folder_);
  const fs::path file = recordFile(folder_);
  // O_NOFOLLOW: the name is predictable, and a link there would overwrite another file.
  lock_ = Fd(::open(file.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!lock_.valid()) failWrite(file, errno);
  struct flock lock = wholeFile(F_WRLCK);
  if (::fcntl(lock_.get(), F_OFD_SETLK, &lock) != 0) failHeld(folder_);
  // Takes over a file that another user left here: `stop` checks its owner.
  [[maybe_unused]] const int kept = ::fchown(lock_.get(), ::geteuid(), static_cast<gid_t>(-1));
  record(holder);  // from now on a rejected launch can name this one
  // The progress of a launcher that was killed does not belong to this run.
  std::error_code ignored;
  for (const char* name : {"status.json", "status.json.tmp"}) fs::remove(folder_ / name, ignored);
}

bool RunLock::held() const {
  DTF_CHECK(lock_.valid());
  struct stat locked {
  }, named{};
  if (::fstat(lock_.get(), &locked) != 0) return true;  // the disk does not respond: unknown
  if (::stat(recordFile(folder_).c_str(), &named) != 0) return errno != ENOENT && errno != ENOTDIR;
  return locked.st_dev == named.st_dev && locked.st_ino == named.st_ino;
}

std::string lostFolderText(const fs::path& folder) {
  return "the run directory " + folder.string() +
         " was removed or replaced while the job runs there: its logs, checkpoints and summary are "
         "lost, status and stop don't find it, and another job may start in that place";
}

void RunLock::record(const LaunchRecord& record) {
  DTF_CHECK(lock_.valid() && record.launcher > 0);
  Json tasks = Json::array();
  for (const RecordedTask& task : record.tasks)
    tasks.push_back(Json{{"name", task.name},
                         {"pid", task.pid},
                         {"address", task.address},
                         {"start_ticks", task.pid > 0 ? identityOf(task.pid).start_ticks : 0}});
  const ProcessIdentity identity = identityOf(record.launcher);
  const std::string text = Json{{"schema", 1},
                                {"job", record.job},
                                {"program", record.program},
                                {"launcher_pid", record.launcher},
                                {"host", identity.host},
                                {"boot_id", identity.boot},
                                {"start_ticks", identity.start_ticks},
                                {"attempt", record.attempt},
                                {"serves", record.serves},
                                {"already_done", record.already_done},
                                {"started", started_},
                                {"tasks", tasks}}
                               .dump(2) +
                           "\n";
  if (::pwrite(lock_.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()) ||
      ::ftruncate(lock_.get(), static_cast<off_t>(text.size())) != 0)
    throw Error(ErrorCode::kCannotWrite,
                "cannot write " + recordFile(folder_).string() + ": " + errnoText(errno));
}

std::optional<LaunchRecord> runningLaunch(const fs::path& folder) {
  const Fd file(::open(recordFile(folder).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!file.valid()) return std::nullopt;
  struct flock lock = wholeFile(F_RDLCK);
  if (::fcntl(file.get(), F_OFD_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return std::nullopt;
  return lastLaunch(folder);
}

}  // namespace dtf
