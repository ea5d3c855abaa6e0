#pragma once

// The units of one job on this host: written, started, asked, stopped and removed.

#include <filesystem>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/cluster/spec.h"
#include "launcher/launch_plan.h"
#include "launcher/systemd/service_control.h"

namespace dtf::launcher {

// Where the units of the tasks of `plan` would be written, and their text.
struct UnitFile {
  std::string name;
  std::string text;
};
// `logs`: the absolute folder of the logs of this launch, which is the `attempt`-th there.
// Errors: those of unitText().
std::vector<UnitFile> unitFiles(const cluster::JobSpec& job, const std::vector<TaskCommand>& plan,
                                const std::filesystem::path& logs, int attempt);

// Owns: nothing that ends with it: units go on until they have ended or are stopped.
// Borrows: `job` (must outlive this).
// Threads: thread-compatible.
// Blocks: on systemctl.
// Errors: those of ServiceControl.
class UnitJob {
 public:
  explicit UnitJob(const cluster::JobSpec& job);

  const ServiceControl& control() const { return control_; }
  const std::vector<std::string>& units() const { return units_; }  // names, ps first
  std::vector<UnitState> states() const { return control_.states(units_); }
  bool isAlive() const;  // some unit is

  // Taken by whoever changes the units of this user: from asking whether the names are free to their
  // start, and while those of a job that has ended are removed. Held as long as the descriptor is open.
  // Blocks: while another dtf-launch holds it, kLockedMax at most.
  // Errors: kUnavailable after that; kCannotWrite.
  static constexpr Duration kLockedMax = std::chrono::seconds(120);
  Fd lock() const;

  // kUnavailable, saying where the units of this name log, when that isn't `logs`: they are another run's.
  // Those that have no file are anybody's.
  void checkOwn(const std::filesystem::path& logs) const;
  // Errors: kUnavailable when units of that name run; kBadConfig when somebody else's unit has it.
  void checkFree() const;
  // Writes the files and has systemd start them, without waiting for that. What a job before has left
  // under these names is replaced.
  // Errors: kCannotWrite.
  void start(const std::vector<UnitFile>& files) const;
  void stop() const;  // asks all to end, and systemd not to start them again
  void kill() const;  // with SIGKILL
  // remove(), of units that have ended, and that nobody has started again since.
  void removeEnded() const;
  // Removes the files, what systemd remembers of units that have failed, and snapshots in memory.
  void remove() const;

 private:
  void makeFolder() const;

  const cluster::JobSpec& job_;
  const ServiceControl control_;
  std::vector<std::string> units_;
};

}  // namespace dtf::launcher
