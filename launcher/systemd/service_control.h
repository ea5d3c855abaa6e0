#pragma once

// systemctl: what dtf-launch asks of the systemd of this host. As root it is process 1; as anybody
// else that user's own (`systemctl --user`), so it needs no rights that its caller lacks.

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/exit_status.h"
#include "launcher/run_program.h"

namespace dtf::launcher {

// What systemd says of a unit. Value type.
struct UnitState {
  std::string name;
  std::string active = "inactive";  // active, activating, deactivating, failed
  std::string result;               // exit-code, signal, watchdog, timeout, start-limit-hit ...
  std::string status;               // its own last words (common/base/service_manager.h)
  std::string file;                 // that it was read from; empty: there is none
  ExitStatus exit;                  // of its last process
  uint32_t restarts = 0;
  bool has_job = false;     // something is about to be done with it
  uint64_t ended_usec = 0;  // when it became inactive or failed, by CLOCK_MONOTONIC

  bool isUp() const { return active == "active"; }
  bool hasFailed() const { return active == "failed" && !has_job; }
  // It runs, is being started or stopped, or waits to be started again.
  bool isAlive() const { return has_job || (active != "inactive" && active != "failed"); }
};

// The time that ended_usec is of.
uint64_t monotonicUsec();

// Of the answer of `systemctl show` for several units. A unit without a name is left out.
std::vector<UnitState> parseUnitStates(std::string_view shown);

// Threads: thread-compatible.
// Blocks: on systemctl, a minute at most.
// Errors: kUnavailable, or kPermission, with systemctl's words.
class ServiceControl {
 public:
  // Errors: kUnavailable where there is no systemd that this user may ask; what to do is said.
  ServiceControl();

  // Where units are written that are gone when the host, or the user's systemd, ends.
  const std::filesystem::path& folder() const { return folder_; }
  // The words before those of run(), for --dry-run: {"systemctl", "--user"}.
  const std::vector<std::string>& command() const { return command_; }
  // "warning: ..." for a user whose units end with their session; else empty.
  std::string warning() const;

  std::vector<UnitState> states(const std::vector<std::string>& units) const;
  // systemctl `words` UNITS.
  void run(std::vector<std::string> words, const std::vector<std::string>& units) const;

 private:
  ProgramAnswer ask(const std::vector<std::string>& words) const;

  std::vector<std::string> command_;
  std::filesystem::path folder_;
  bool is_user_ = false;
};

}  // namespace dtf::launcher
