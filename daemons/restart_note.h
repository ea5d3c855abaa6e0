#pragma once

// The chief's note to the process that systemd starts in its place: the step that the job has
// reached, and its result once it has one. A launcher keeps both itself.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "common/base/json.h"
#include "common/cluster/spec.h"

namespace dtf::daemons {

// A file of one line, JSON and its checksum, in the folder that systemd keeps over restarts of a
// unit and removes when the unit is stopped (RuntimeDirectory=, RuntimeDirectoryPreserve=restart).
// A note of another job or run directory, or a damaged one, counts as none.
// Owns: the step and the result that it has read.
// Threads: thread-compatible.
// Blocks: on the file, which lies in memory.
class RestartNote {
 public:
  // Reads the note of an earlier process in `folder`.
  RestartNote(const std::filesystem::path& folder, const cluster::JobSpec& job);

  // In the first folder of RUNTIME_DIRECTORY; nullopt: systemd has made none, so this process
  // replaces no other one.
  static std::optional<RestartNote> ofEnvironment(const cluster::JobSpec& job);

  // These are the earlier process's.
  std::optional<uint64_t> reached() const { return reached_; }
  const Json& result() const { return result_; }  // null: the job had none

  // Replaces the note. That it can't be written is logged once, and costs the job nothing.
  void reach(uint64_t step);
  void end(uint64_t step, const Json& result);
  // Removes it: the next process was not meant to go on from this one.
  void forget();

 private:
  void read();
  void write(uint64_t step, const Json& result);

  std::filesystem::path file_;
  std::string job_;
  std::string run_dir_;
  std::optional<uint64_t> reached_;
  Json result_;
  bool is_lost_ = false;
};

}  // namespace dtf::daemons
