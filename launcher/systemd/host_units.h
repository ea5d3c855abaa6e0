#pragma once

// One host's part of a job of units: written, started, asked, stopped and removed there, for a
// dtf-launch on it or, by dtf-agent, on another one.

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "common/base/file.h"
#include "launcher/binaries.h"
#include "launcher/ssh/run_files.h"
#include "launcher/systemd/service_control.h"
#include "launcher/systemd/unit_questions.h"

namespace dtf::launcher {

// Owns: nothing that ends with it but the lock that it was asked to take: units go on until they
// have ended or are stopped.
// Threads: thread-compatible.
// Blocks: on systemctl, and on the disk.
class HostUnits {
 public:
  // `find_binaries` says where psd and workerd are; `on_file` takes what was asked for before the
  // answer.
  HostUnits(std::function<Binaries()> find_binaries,
            std::function<void(const FilePiece&)> on_file = {});
  ~HostUnits();
  HostUnits(const HostUnits&) = delete;
  HostUnits& operator=(const HostUnits&) = delete;

  // Errors: those of ServiceControl, of the checks that are asked for, and of files.
  UnitAnswer answer(const UnitQuestion& question);
  // The same for an asker elsewhere: a failure stands in the answer.
  UnitAnswer tell(const UnitQuestion& question);

 private:
  void obey(const MeetQuestion& question, UnitAnswer& answer);
  void obey(const LockQuestion& question, UnitAnswer& answer);
  void obey(const FreeQuestion& question, UnitAnswer& answer);
  void obey(const OwnQuestion& question, UnitAnswer& answer);
  void obey(const WriteQuestion& question, UnitAnswer& answer);
  void obey(const ReplaceQuestion& question, UnitAnswer& answer);
  void obey(const ControlQuestion& question, UnitAnswer& answer);
  void obey(const RemoveQuestion& question, UnitAnswer& answer);
  void obey(const StatesQuestion& question, UnitAnswer& answer);
  void takeRunFolder(const WriteQuestion& question) const;
  void write(const WriteQuestion& question) const;
  void unlock();
  bool isAlive() const;
  void remove() const;
  void dropSnapshots() const;
  bool sendFiles(const StatesQuestion& question);
  bool sendLogs(const FileSizes& kept, size_t& room);
  void sendSummary(uint64_t kept);
  std::filesystem::path sentFolder() const;

  const std::function<Binaries()> find_binaries_;
  const std::function<void(const FilePiece&)> on_file_;
  std::optional<ServiceControl> control_;
  MeetQuestion about_;
  Fd lock_;
  std::optional<RunFilesReader> run_files_;  // once files were wanted
};

}  // namespace dtf::launcher
