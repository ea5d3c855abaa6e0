#include "launcher/notice.h"

#include "launcher/json_fields.h"

namespace dtf::launcher {

namespace {

using nlohmann::json;

std::vector<std::string> textsOf(const json& line, const char* key) {
  std::vector<std::string> texts;
  const auto found = line.find(key);
  if (found == line.end() || !found->is_array()) return texts;
  for (const json& item : *found)
    if (item.is_string()) texts.push_back(item.get<std::string>());
  return texts;
}

constexpr size_t kPsMax = 1024;  // more than a cluster has

std::vector<uint64_t> countsOf(const json& line, const char* key) {
  std::vector<uint64_t> counts;
  const auto found = line.find(key);
  if (found == line.end() || !found->is_array() || found->size() > kPsMax) return counts;
  for (const json& count : *found)
    counts.push_back(count.is_number_unsigned() ? count.get<uint64_t>() : 0);
  return counts;
}

}  // namespace

std::optional<Notice> parseNotice(std::string_view line) {
  json parsed = json::parse(line, nullptr, false);
  if (!parsed.is_object()) return std::nullopt;
  const std::string event = textOf(parsed, "event");
  if (event == "ready") return ReadyNotice{};
  if (event == "waiting") return WaitingNotice{textOf(parsed, "for")};
  if (event == "failed") return FailedNotice{textOf(parsed, "code"), textOf(parsed, "message")};
  if (event == "worker_lost") {
    const auto lease = parsed.find("lease");
    if (lease == parsed.end() || *lease != true) return std::nullopt;
    return WorkerLostNotice{textOf(parsed, "worker"),
                            static_cast<uint32_t>(countOf(parsed, "attempt").value_or(0))};
  }
  if (event == "model")
    return ModelNotice{countOf(parsed, "variables").value_or(0),
                       countOf(parsed, "parameters").value_or(0), countsOf(parsed, "ps_bytes")};
  if (event == "evaluation")
    return EvaluationNotice{countOf(parsed, "step").value_or(0), numberOf(parsed, "loss"),
                            numberOf(parsed, "accuracy"), metricsOf(parsed)};
  if (event == "restored")
    return RestoredNotice{countOf(parsed, "step").value_or(0), countOf(parsed, "steps").value_or(0),
                          textOf(parsed, "saved"), textsOf(parsed, "changes")};
  if (event == "went_back")
    return WentBackNotice{countOf(parsed, "step").value_or(0),
                          countOf(parsed, "steps_lost").value_or(0), textOf(parsed, "reason")};
  if (event == "checkpoint")
    return CheckpointNotice{countOf(parsed, "step").value_or(0), numberOf(parsed, "seconds"),
                            numberOf(parsed, "stall_seconds")};
  if (event == "progress") {
    return ProgressNotice{countOf(parsed, "step").value_or(0), countOf(parsed, "steps").value_or(0),
                          numberOf(parsed, "loss"), numberOf(parsed, "examples_per_second"),
                          numberOf(parsed, "eval_accuracy")};
  }
  if (event == "result") {
    parsed.erase("event");
    return ResultNotice{parsed.dump(-1, ' ', false, json::error_handler_t::replace)};
  }
  return std::nullopt;
}

}  // namespace dtf::launcher
