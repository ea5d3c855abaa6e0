#include "launcher/event_writer.h"

#include "common/base/check.h"
#include "common/base/wall_time.h"
#include "common/model/metrics.h"
#include "launcher/json_fields.h"

namespace dtf::launcher {

void EventWriter::started(TaskId id, pid_t pid) {
  write("started",
        {{"task", id.name()}, {"pid", orNull(pid == 0 ? std::nullopt : std::optional(pid))}});
}

void EventWriter::serving(const std::vector<std::string>& targets) {
  write("serving", {{"targets", targets}});
}

void EventWriter::ready(TaskId id) {
  write("ready", {{"task", id.name()}});
}

void EventWriter::leftOut(const LeftOutNotice& notice) {
  write("left_out", {{"records", notice.records}, {"reasons", notice.reasons}});
}

void EventWriter::model(const ModelNotice& notice) {
  write("model", {{"variables", notice.variables},
                  {"parameters", notice.parameters},
                  {"ps_bytes", notice.ps_bytes}});
}

void EventWriter::restored(const RestoredNotice& notice) {
  write("restored", {{"step", notice.step}});
}

void EventWriter::wentBack(const WentBackNotice& notice) {
  write("went_back",
        {{"step", notice.step}, {"steps_lost", notice.steps_lost}, {"reason", notice.reason}});
}

void EventWriter::progress(const ProgressNotice& notice) {
  write("progress", {{"step", notice.step},
                     {"steps", notice.steps},
                     {"loss", orNull(notice.loss)},
                     {"examples_per_second", orNull(notice.examples_per_second)},
                     {"eval_accuracy", orNull(notice.eval_accuracy)},
                     {"straggler", stragglerJson(notice.straggler)}});
}

void EventWriter::evaluation(const EvaluationNotice& notice) {
  Json fields = {
      {"step", notice.step}, {"loss", orNull(notice.loss)}, {"accuracy", orNull(notice.accuracy)}};
  for (const auto& [key, value] : fields.members()) DTF_CHECK_MSG(model::isEvaluationKey(key), key);
  for (const auto& [name, value] : notice.metrics) fields[name] = value;
  write("evaluation", std::move(fields));
}

void EventWriter::checkpoint(const CheckpointNotice& notice) {
  write("checkpoint", {{"step", notice.step},
                       {"seconds", orNull(notice.seconds)},
                       {"stall_seconds", orNull(notice.stall_seconds)}});
}

void EventWriter::exchange(double measured_seconds, double predicted_seconds) {
  write("exchange",
        {{"measured_ms", measured_seconds * 1e3}, {"predicted_ms", predicted_seconds * 1e3}});
}

void EventWriter::ended(TaskId id, const ExitStatus& status) {
  write("ended", {{"task", id.name()}, {"exit_code", status.shellCode()}});
}

void EventWriter::restarting(TaskId id, uint32_t restarts) {
  write("restarting", {{"task", id.name()}, {"restarts", restarts}});
}

bool EventWriter::summary(const Json& summary) {
  constexpr Duration kPatience = std::chrono::seconds(10);
  queue_.finish(kPatience);  // makes the room
  write("summary", summary);
  return queue_.finish(kPatience);
}

void EventWriter::write(const char* event, Json fields) {
  if (!enabled_) return;
  Json line = {{"schema", 1}, {"event", event}, {"time", wallTimeText()}};
  line.update(fields);
  queue_.push(line.dump() + "\n");
  queue_.pump();
}

}  // namespace dtf::launcher
