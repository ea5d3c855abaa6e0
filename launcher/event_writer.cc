#include "launcher/event_writer.h"

#include <nlohmann/json.hpp>

namespace dtf::launcher {

using nlohmann::ordered_json;

namespace {

ordered_json orNull(const std::optional<double>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

}  // namespace

void EventWriter::started(TaskId id, pid_t pid) {
  write({{"schema", 1}, {"event", "started"}, {"task", id.name()}, {"pid", pid}});
}

void EventWriter::ready(TaskId id) {
  write({{"schema", 1}, {"event", "ready"}, {"task", id.name()}});
}

void EventWriter::progress(const ProgressNotice& notice) {
  write({{"schema", 1},
         {"event", "progress"},
         {"step", notice.step},
         {"steps", notice.steps},
         {"loss", orNull(notice.loss)},
         {"examples_per_second", orNull(notice.examples_per_second)},
         {"eval_accuracy", orNull(notice.eval_accuracy)}});
}

void EventWriter::checkpoint(const CheckpointNotice& notice) {
  write({{"schema", 1},
         {"event", "checkpoint"},
         {"step", notice.step},
         {"seconds", orNull(notice.seconds)},
         {"stall_seconds", orNull(notice.stall_seconds)}});
}

void EventWriter::ended(TaskId id, const ExitStatus& status) {
  write(
      {{"schema", 1}, {"event", "ended"}, {"task", id.name()}, {"exit_code", status.shellCode()}});
}

void EventWriter::summary(const ordered_json& summary) {
  constexpr Duration kPatience = std::chrono::seconds(10);
  queue_.finish(kPatience);  // makes the room
  ordered_json line = {{"schema", 1}, {"event", "summary"}};
  line.update(summary);
  write(line);
  queue_.finish(kPatience);
}

void EventWriter::write(const ordered_json& event) {
  if (!enabled_) return;
  queue_.push(event.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n");
  queue_.pump();
}

}  // namespace dtf::launcher
