#pragma once

// A chief's note for its successor under systemd: the step that the job has reached, and its result
// if it has one. Under dtf-launch, the launcher keeps both.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "common/base/json.h"
#include "common/cluster/spec.h"

namespace dtf::daemons {

// A file with one line of JSON and its checksum, in the folder that systemd keeps over restarts of
// a unit and removes when the unit is stopped (RuntimeDirectory=,
// RuntimeDirectoryPreserve=restart). Ignores a damaged note, and a note of another job or run
// directory.
// Owns: the step and the result of the earlier note.
// Threads: thread-compatible.
// Blocks: on the file, which is in memory.
class RestartNote {
 public:
  // Reads the note of an earlier process in `folder`.
  RestartNote(const std::filesystem::path& folder, const cluster::JobSpec& job);

  // Uses the first folder of RUNTIME_DIRECTORY. nullopt: systemd has made none, so this process
  // replaces no other.
  static std::optional<RestartNote> ofEnvironment(const cluster::JobSpec& job);

  // Values of the earlier process.
  std::optional<uint64_t> reached() const { return reached_; }
  const Json& result() const { return result_; }  // null: the job had none

  // Replace the note. A failed write is logged once and doesn't affect the job.
  void reach(uint64_t step);
  void end(uint64_t step, const Json& result);
  // Removes the note: the next process starts afresh.
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
