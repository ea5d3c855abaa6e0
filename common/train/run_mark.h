#pragma once

// The mark on the global step's task by which the clients of a run know of each other: whether the
// model is ready, and whether its run is finished.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "common/engine/session.h"
#include "common/graph/graph.h"

namespace dtf::train {

// The variable of the mark: the number of the run, its negative when the run is finished, or 0. It
// belongs to no graph of the program, so no checkpoint has it.
inline constexpr char kReadyVariable[] = "supervisor/ready";

// Reads and writes the mark in a small session of its own. Its steps need the global step's task
// alone; to open it, all targets of the program must reply, and each counts it as a session beside
// the program's. Owns: that session, from the first use
// until close(). Threads: thread-compatible. Blocks: on the task. Errors: as engine::Session.
class RunMark {
 public:
  // Opens a session on the program's tasks.
  using Open = std::function<std::shared_ptr<engine::Session>(const graph::Graph& graph)>;

  // `log_dir`: of the run. Any text of the folder is the same for all clients, on whichever host
  // they are; "run/" is "run". Without one, a client that is no chief takes every run for its own.
  RunMark(const std::filesystem::path& log_dir, bool is_chief);

  // `counter`: the name of the global step. Closes the session.
  void place(Open open, std::string counter);

  // `model`: the session of the program, whose tasks have the mark.
  int64_t read(const engine::Session& model);
  void write(const engine::Session& model, int64_t value);
  void close() { session_.reset(); }

  int64_t number() const { return number_; }  // of the run, above 0
  bool isOwn(int64_t value) const {
    return takes_any_ ? value != 0 : value == number_ || value == -number_;
  }

 private:
  engine::Session& session(const engine::Session& model);

  const int64_t number_;
  const bool takes_any_;
  Open open_;
  std::string counter_;
  std::shared_ptr<engine::Session> session_;  // null: not in use
};

}  // namespace dtf::train
