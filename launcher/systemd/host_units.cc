#include "launcher/systemd/host_units.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <utility>

#include "common/base/check.h"
#include "common/base/checksum.h"
#include "common/base/error.h"
#include "common/base/job_summary.h"
#include "common/base/run_lock.h"
#include "common/checkpoint/snapshot_folder.h"
#include "common/yaml/error_at.h"
#include "launcher/listen_sockets.h"
#include "launcher/log_fanin.h"
#include "launcher/run_folder.h"
#include "launcher/systemd/unit_text.h"
#include "launcher/timeline.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

namespace {

constexpr mode_t kUnitLogFileMode = 0640;
constexpr const char* kHolder = ".dtf-launch";  // of the lock; no unit
constexpr uint64_t kSummaryBytesMax = kFilePieceBytesMax;
constexpr size_t kFilesEachAnswer = size_t{1} << 20;

void makeFolder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) failWrite(folder, error.value());
}

// For no other user: keys are among the files.
void writeSent(const fs::path& folder, const SentFiles& files) {
  for (const auto& [path, text] : files) {
    const fs::path place = folder / path.relative_path();
    makeFolder(place.parent_path());
    const fs::path unfinished = place.string() + ".new";
    ::unlink(unfinished.c_str());
    const Fd fd(::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!fd.valid() || writeAll(fd.get(), text) > 0) failWrite(place, errno);
    if (::rename(unfinished.c_str(), place.c_str()) != 0) failWrite(place, errno);
  }
}

// They are there before their first line, so that whoever follows can open them.
void makeLogs(const fs::path& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const fs::path file = folder / name;
    const Fd log(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kUnitLogFileMode));
    if (!log.valid()) failWrite(file, errno);
  }
}

bool isPlainName(const std::string& name) {
  return !name.empty() && name[0] != '.' && name.find('/') == std::string::npos;
}

}  // namespace

HostUnits::HostUnits(std::function<Binaries()> find_binaries,
                     std::function<void(const FilePiece&)> on_file)
    : find_binaries_(std::move(find_binaries)), on_file_(std::move(on_file)) {}

HostUnits::~HostUnits() {
  unlock();
}

UnitAnswer HostUnits::answer(const UnitQuestion& question) {
  if (!control_ && !std::holds_alternative<MeetQuestion>(question))
    throw Error(ErrorCode::kBadData, "the first request must name the units");
  UnitAnswer answer;
  std::visit([&](const auto& each) { obey(each, answer); }, question);
  return answer;
}

UnitAnswer HostUnits::tell(const UnitQuestion& question) {
  UnitAnswer failed;
  try {
    return answer(question);
  } catch (const yaml::ErrorAt& error) {
    failed.error.emplace(error.code(), error.reason());
  } catch (const Error& error) {
    failed.error = error;
  }
  return failed;
}

void HostUnits::obey(const MeetQuestion& question, UnitAnswer& answer) {
  if (question.units.empty()) throw Error(ErrorCode::kBadData, "a request without units");
  for (const std::string& unit : question.units)
    if (!isPlainName(unit))
      throw Error(ErrorCode::kBadData, "'" + unit + "' is not a name of a unit");
  control_.emplace();
  about_ = question;
  run_files_.reset();
  HostFacts& facts = answer.facts.emplace();
  facts.unit_folder = control_->folder();
  facts.systemctl = control_->command();
  facts.warning = control_->warning();
  facts.env = keptEnvironment();
  facts.sent_folder = sentFolder();
  std::error_code ignored;
  facts.work_folder =
      fs::is_directory(question.folder, ignored) ? question.folder : question.run_dir;
  facts.attempt = nextAttempt(question.run_dir / "logs");
  if (!question.starts) return;
  const Binaries binaries = find_binaries_();
  facts.psd = fs::absolute(binaries.psd).lexically_normal();
  facts.workerd = fs::absolute(binaries.workerd).lexically_normal();
}

// Beside the units, and of their life: gone with the host. Another name of this host, with other
// units, has another one.
fs::path HostUnits::sentFolder() const {
  DTF_CHECK(control_ && !about_.units.empty());
  const fs::path folder = control_->folder();
  return folder.parent_path().parent_path() / "dtf-units" / about_.units.front();
}

void HostUnits::obey(const LockQuestion& question, UnitAnswer& answer) {
  if (!question.take) return unlock();
  makeFolder(control_->folder());
  Fd folder(::open(control_->folder().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) failWrite(control_->folder(), errno);
  if (::flock(folder.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) failWrite(control_->folder(), errno);
    std::ifstream text(control_->folder() / kHolder);
    std::string holder;
    answer.locked = std::getline(text, holder) && holder == about_.launch;
    return;
  }
  atomicReplace(control_->folder() / kHolder, about_.launch + "\n");
  lock_ = std::move(folder);
  answer.locked = true;
}

// While the next one has it and hasn't said so yet, whoever had it before would read its own name.
void HostUnits::unlock() {
  if (lock_.valid()) ::unlink((control_->folder() / kHolder).c_str());
  lock_.reset();
}

void HostUnits::obey(const FreeQuestion& /*question*/, UnitAnswer& /*answer*/) {
  for (const UnitState& unit : control_->states(about_.units)) {
    if (!unit.file.empty() && fs::path(unit.file).parent_path() != control_->folder())
      throw Error(
          ErrorCode::kBadConfig,
          fmt::format(
              "{} was not written by dtf-launch, and has the name of the unit {} of this job\n"
              "  give the job another name (`job:`), or remove that file",
              unit.file, unit.name));
    if (unit.isAlive())
      throw Error(
          ErrorCode::kUnavailable,
          fmt::format("a unit {} runs already ({}): a job {} was started before\n"
                      "  dtf-launch attach shows it, dtf-launch stop ends it, each with its "
                      "file and --run-dir; another job needs another name (`job:`)",
                      unit.name, unit.active, about_.job));
  }
}

void HostUnits::obey(const OwnQuestion& question, UnitAnswer& /*answer*/) {
  const std::string own = runLine(question.logs);
  for (const std::string& unit : about_.units) {
    const fs::path file = control_->folder() / unit;
    std::ifstream text(file);
    for (std::string line; std::getline(text, line);)
      if (line.starts_with(runLine({})) && line != own)
        throw Error(
            ErrorCode::kUnavailable,
            fmt::format("the units dtf-{}@* belong to another run: {}\n"
                        "  name the run with --run-dir, or give this job another name (`job:`)",
                        about_.job, line.substr(2)));
  }
}

// What an earlier launch has left must not be taken for this one's.
void HostUnits::takeRunFolder(const WriteQuestion& question) const {
  checkNothingRuns(about_.run_dir);
  ListenSockets::open(question.tasks, question.reachable);
  makeWritableFolder(about_.run_dir / "logs");
  if (!question.mark.empty() && hasMark(about_.run_dir, question.mark)) return;
  removeSummary(about_.run_dir);
  std::vector<TaskId> tasks;
  for (const auto& [id, task] : question.tasks) tasks.push_back(id);
  removeTimelines(about_.run_dir, tasks);
  makeLogs(about_.run_dir / "logs", question.logs);
}

void HostUnits::obey(const WriteQuestion& question, UnitAnswer& /*answer*/) {
  takeRunFolder(question);  // before anything is removed that a job that runs there needs
  try {
    remove();
    if (!question.keeps_snapshots) dropSnapshots();
    write(question);
  } catch (const Error&) {
    remove();
    throw;
  }
}

void HostUnits::write(const WriteQuestion& question) const {
  makeFolder(control_->folder());
  if (!question.sent.empty()) {
    makeFolder(sentFolder().parent_path());
    if (::mkdir(sentFolder().c_str(), 0700) != 0 && errno != EEXIST) failWrite(sentFolder(), errno);
    writeSent(sentFolder(), question.sent);
  }
  for (const UnitFile& file : question.files) {
    if (std::find(about_.units.begin(), about_.units.end(), file.name) == about_.units.end())
      throw Error(ErrorCode::kBadData,
                  "'" + file.name + "' is not a unit of this job on this host");
    atomicReplace(control_->folder() / file.name, file.text);
  }
  control_->run({"daemon-reload"}, {});
}

void HostUnits::obey(const ReplaceQuestion& question, UnitAnswer& /*answer*/) {
  std::error_code ignored;
  if (fs::is_directory(sentFolder(), ignored)) writeSent(sentFolder(), question.sent);
}

void HostUnits::obey(const ControlQuestion& question, UnitAnswer& /*answer*/) {
  // systemctl refuses all for the sake of one that it doesn't know: after a stop that did not reach
  // every host, those of this one were removed.
  std::vector<std::string> known;
  for (const UnitState& unit : control_->states(about_.units))
    if (!unit.file.empty() || unit.isAlive()) known.push_back(unit.name);
  if (!known.empty()) control_->run(question.words, known);
}

bool HostUnits::isAlive() const {
  const std::vector<UnitState> states = control_->states(about_.units);
  return std::any_of(states.begin(), states.end(),
                     [](const UnitState& unit) { return unit.isAlive(); });
}

void HostUnits::obey(const RemoveQuestion& question, UnitAnswer& /*answer*/) {
  if (question.only_ended && isAlive()) return;
  if (question.drops_snapshots) dropSnapshots();
  remove();
}

void HostUnits::dropSnapshots() const {
  checkpoint::removeSnapshots(realFileSystem(),
                              checkpoint::sharedMemoryPlace(about_.job, about_.run_dir));
}

// The files, and what systemd remembers of units that have failed.
void HostUnits::remove() const {
  std::error_code ignored;
  fs::remove_all(sentFolder(), ignored);
  bool any = false;
  for (const std::string& unit : about_.units)
    any = fs::remove(control_->folder() / unit, ignored) || any;
  if (!any) return;
  try {
    control_->run({"reset-failed"}, about_.units);
  } catch (const Error&) {  // systemd has forgotten some of them by itself
  }
  control_->run({"daemon-reload"}, {});
}

void HostUnits::obey(const StatesQuestion& question, UnitAnswer& answer) {
  answer.states = control_->states(about_.units);
  const uint64_t now = monotonicUsec();
  for (UnitState& unit : answer.states)
    unit.ended_usec = unit.ended_usec == 0 || unit.ended_usec > now ? 0 : now - unit.ended_usec;
  // After the states: of a unit that has ended all is written.
  if (question.wants_files && on_file_) answer.has_more = sendFiles(question);
}

// Whether there is more than an answer has room for.
bool HostUnits::sendFiles(const StatesQuestion& question) {
  DTF_CHECK(on_file_ != nullptr);
  if (!question.mark.empty() && hasMark(about_.run_dir, question.mark)) return false;
  // First: how the job has ended is known before its logs are here.
  const auto summary = question.kept.find(summaryFile(about_.run_dir).filename().string());
  if (summary != question.kept.end()) sendSummary(summary->second);
  size_t room = kFilesEachAnswer;
  if (sendLogs(question.kept, room)) return true;
  if (!run_files_) run_files_.emplace(about_.run_dir, question.kept);
  run_files_->look();
  while (const std::optional<FilePiece> piece = run_files_->next()) {
    on_file_(*piece);
    if (piece->bytes.size() >= room) return true;
    room -= piece->bytes.size();
  }
  return false;
}

bool HostUnits::sendLogs(const FileSizes& kept, size_t& room) {
  DTF_CHECK(room > 0);
  for (const auto& [name, size] : kept) {
    const std::string file = name.starts_with("logs/") ? name.substr(5) : "";
    if (!isPlainName(file)) continue;
    const Fd fd(::open((about_.run_dir / "logs" / file).c_str(), O_RDONLY | O_CLOEXEC));
    for (uint64_t at = size; fd.valid();) {
      FilePiece piece{name, at, std::string(std::min(room, kFilePieceBytesMax), '\0')};
      const ssize_t n =
          ::pread(fd.get(), piece.bytes.data(), piece.bytes.size(), static_cast<off_t>(at));
      if (n <= 0) break;
      piece.bytes.resize(static_cast<size_t>(n));
      at += piece.bytes.size();
      room -= piece.bytes.size();
      on_file_(piece);
      if (room == 0) return true;
    }
  }
  return false;
}

void HostUnits::sendSummary(uint64_t kept) {
  std::error_code gone;
  const fs::path file = summaryFile(about_.run_dir);
  if (!fs::is_regular_file(file, gone)) return;
  try {
    const std::string text = readFile(file, kSummaryBytesMax);
    if (checksumOf(text) != kept) on_file_({file.filename().string(), 0, text});
  } catch (const Error&) {  // it is just being replaced
  }
}

}  // namespace dtf::launcher
