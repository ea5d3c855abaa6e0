#pragma once

// `--json`: what happens, as JSON lines on stdout, for programs. Every line has "schema" and
// "event".

#include <nlohmann/json_fwd.hpp>

#include "launcher/console.h"
#include "launcher/exit_status.h"
#include "launcher/notice.h"
#include "launcher/spawner.h"

namespace dtf::launcher {

// Events: started {task, pid}, ready {task}, progress {...}, ended {task, exit_code}, and at the
// very end summary {...}, the content of summary.json. Owns: a console for the descriptor, with its
// bound.  Borrows: the descriptor. Threads: loop-thread only.  Blocks: only finish().
class EventWriter {
 public:
  // `enabled` false: every call does nothing.
  EventWriter(int fd, bool enabled) : console_(fd, false), enabled_(enabled) {}

  void started(TaskId id, pid_t pid);
  void ready(TaskId id);
  void progress(const ProgressNotice& notice);
  void ended(TaskId id, const ExitStatus& status);
  void summary(const nlohmann::ordered_json& summary);

  bool pump() { return console_.pump(); }
  void finish() { console_.finish(); }

 private:
  void write(const nlohmann::ordered_json& event);

  Console console_;
  const bool enabled_;
};

}  // namespace dtf::launcher
