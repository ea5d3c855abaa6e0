#include "launcher/systemd/unit_job.h"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <thread>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/file.h"
#include "launcher/log_fanin.h"
#include "launcher/snapshot_guard.h"
#include "launcher/systemd/unit_text.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

std::vector<UnitFile> unitFiles(const cluster::JobSpec& job, const std::vector<TaskCommand>& plan,
                                const fs::path& logs, int attempt) {
  DTF_CHECK_MSG(logs.is_absolute() && attempt > 0, logs.string());
  std::vector<UnitFile> files;
  UnitSettings settings{keptEnvironment(), {}};
  for (const TaskCommand& command : plan) {
    settings.log = logs / logFileName(command.id, attempt);
    files.push_back({unitName(job.job, command.id), unitText(job, command, settings)});
  }
  return files;
}

UnitJob::UnitJob(const cluster::JobSpec& job) : job_(job) {
  for (const TaskId id : allTasks(job.cluster)) units_.push_back(unitName(job.job, id));
}

bool UnitJob::isAlive() const {
  const std::vector<UnitState> now = states();
  return std::any_of(now.begin(), now.end(), [](const UnitState& unit) { return unit.isAlive(); });
}

Fd UnitJob::lock() const {
  constexpr auto kAgain = std::chrono::milliseconds(50);
  makeFolder();
  Fd folder(::open(control_.folder().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) failWrite(control_.folder(), errno);
  const SystemClock clock;
  const TimePoint deadline = clock.now() + kLockedMax;
  while (::flock(folder.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) failWrite(control_.folder(), errno);
    if (clock.now() > deadline)
      throw Error(
          ErrorCode::kUnavailable,
          fmt::format("another dtf-launch has been starting or removing units in {} for {:.0f} "
                      "s\n  wait for it, or see what its systemctl hangs on: ps -ef",
                      control_.folder().string(), toSeconds(kLockedMax)));
    std::this_thread::sleep_for(kAgain);
  }
  return folder;
}

void UnitJob::makeFolder() const {
  std::error_code error;
  fs::create_directories(control_.folder(), error);
  if (error) failWrite(control_.folder(), error.value());
}

void UnitJob::checkFree() const {
  for (const UnitState& unit : states()) {
    if (!unit.file.empty() && fs::path(unit.file).parent_path() != control_.folder())
      throw Error(ErrorCode::kBadConfig,
                  fmt::format("{} is not dtf-launch's, and would be the unit {} of this job\n"
                              "  give the job another name (`job:`), or remove that file",
                              unit.file, unit.name));
    if (unit.isAlive())
      throw Error(
          ErrorCode::kUnavailable,
          fmt::format("a unit {} runs already ({}): a job {} was started before\n"
                      "  dtf-launch attach shows it, dtf-launch stop ends it, each with its "
                      "file and --run-dir; another job needs another name (`job:`)",
                      unit.name, unit.active, job_.job));
  }
}

void UnitJob::checkOwn(const fs::path& logs) const {
  const std::string own = runLine(fs::absolute(logs).lexically_normal());
  for (const std::string& unit : units_) {
    const fs::path file = control_.folder() / unit;
    std::ifstream text(file);
    for (std::string line; std::getline(text, line);)
      if (line.starts_with(runLine({})) && line != own)
        throw Error(ErrorCode::kUnavailable,
                    fmt::format("the units dtf-{}@* are another run's: {}\n"
                                "  name the run with --run-dir, or give this job another name "
                                "(`job:`)",
                                job_.job, line.substr(2)));
  }
}

// What of a start that has failed is there is taken back.
void UnitJob::start(const std::vector<UnitFile>& files) const {
  DTF_CHECK(files.size() == units_.size());
  remove();
  makeFolder();
  try {
    for (const UnitFile& file : files) atomicReplace(control_.folder() / file.name, file.text);
    control_.run({"daemon-reload"}, {});
    control_.run({"start", "--no-block"}, units_);
  } catch (const Error&) {
    try {
      stop();
    } catch (const Error&) {  // the first error says more
    }
    remove();
    throw;
  }
}

void UnitJob::stop() const {
  control_.run({"stop", "--no-block"}, units_);
}

void UnitJob::kill() const {
  control_.run({"kill", "--signal=KILL"}, units_);
}

void UnitJob::removeEnded() const {
  const Fd locked = lock();
  if (!isAlive()) remove();
}

void UnitJob::remove() const {
  DTF_CHECK(!units_.empty());
  const SnapshotGuard snapshots(job_);
  std::error_code ignored;
  bool any = false;
  for (const std::string& unit : units_) any = fs::remove(control_.folder() / unit, ignored) || any;
  if (!any) return;
  try {
    control_.run({"reset-failed"}, units_);
  } catch (const Error&) {  // systemd has forgotten some of them by itself
  }
  control_.run({"daemon-reload"}, {});
}

}  // namespace dtf::launcher
