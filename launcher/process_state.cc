#include "launcher/process_state.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <string>
#include <string_view>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/file.h"
#include "common/base/process_identity.h"
#include "common/base/text.h"

namespace dtf::launcher {

bool isSuspended(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string stat;
  std::getline(file, stat);
  const size_t end = stat.rfind(") ");  // the name before it may hold anything
  if (end == std::string::npos || end + 2 >= stat.size()) return false;
  return stat[end + 2] == 'T' || stat[end + 2] == 't';
}

bool isOutOfReach(pid_t pid) {
  struct stat owner {};
  const bool is_there = ::stat(("/proc/" + std::to_string(pid)).c_str(), &owner) == 0;
  return is_there && ::geteuid() != 0 && owner.st_uid != ::geteuid();
}

namespace {

constexpr std::string_view kPrograms[] = {"dtf-launch", "workerd", "psd"};

// The file that runs as `process`, "/proc/PID" or "/proc/self"; empty: it can't be looked at.
std::string programOf(const std::string& process) {
  std::error_code unknown;
  return std::filesystem::read_symlink(process + "/exe", unknown).string();
}

// A program that was replaced by an upgrade while it runs is still one of dtf.
bool isOfDtf(std::string program) {
  constexpr std::string_view kDeleted = " (deleted)";
  if (program == programOf("/proc/self")) return true;
  if (program.ends_with(kDeleted)) program.resize(program.size() - kDeleted.size());
  const std::string name = std::filesystem::path(program).filename();
  return std::find(std::begin(kPrograms), std::end(kPrograms), name) != std::end(kPrograms);
}

[[noreturn]] void refuse(const LaunchRecord& record, const std::filesystem::path& folder,
                         const std::string& why) {
  throw Error(ErrorCode::kUnavailable,
              fmt::format("{} names pid {}, but {}: no process was signalled. If it is the job's, "
                          "end it by hand: kill -TERM {}",
                          (folder / "launch.json").string(), record.launcher, printable(why),
                          record.launcher));
}

// The reason why the process can't be the one of the record; empty: it is.
std::string strangeness(const LaunchRecord& record, const std::filesystem::path& folder) {
  const ProcessIdentity found = identityOf(record.launcher);
  const ProcessIdentity& said = record.identity;
  // A host may get another name while it runs; its boot is its own.
  if (!said.host.empty() && said.boot != found.boot)
    return said.host == found.host
               ? "this host was rebooted since then"
               : fmt::format("it runs on the host {}, and this is {}: stop the job there",
                             said.host, found.host);
  const std::string process = "/proc/" + std::to_string(record.launcher);
  struct stat owner {
  }, file{};
  if (::stat(process.c_str(), &owner) != 0) return "that process doesn't exist";
  if (::stat((folder / "launch.json").c_str(), &file) != 0) return "the file is gone";
  if (owner.st_uid != file.st_uid)
    return fmt::format("that is a process of user {}, but the file belongs to user {}",
                       owner.st_uid, file.st_uid);
  const std::string program = programOf(process);
  if (!program.empty() && !isOfDtf(program))
    return fmt::format("that is {}, not a program of dtf", program);
  if (said.start_ticks != 0 && said.start_ticks != found.start_ticks)
    return "another process has that pid now";
  return "";
}

}  // namespace

void endLauncher(const LaunchRecord& record, const std::filesystem::path& folder) {
  DTF_CHECK(!folder.empty());
  // Held before it is looked at: a number that is given again meanwhile isn't signalled.
  const Fd held(
      record.launcher > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, record.launcher, 0)) : -1);
  // A sandbox may refuse the call; then the number is looked at alone.
  if (!held.valid() && (record.launcher <= 0 || errno == ESRCH))
    refuse(record, folder, "that process doesn't exist");
  if (const std::string why = strangeness(record, folder); !why.empty())
    refuse(record, folder, why);
  const int sent =
      held.valid()
          ? static_cast<int>(::syscall(SYS_pidfd_send_signal, held.get(), SIGTERM, nullptr, 0))
          : ::kill(record.launcher, SIGTERM);
  if (sent == 0) return;
  throw Error(errno == EPERM ? ErrorCode::kPermission : ErrorCode::kUnavailable,
              fmt::format("cannot signal {} of {}, pid {}: {}", record.program, folder.string(),
                          record.launcher, errnoText(errno)));
}

}  // namespace dtf::launcher
