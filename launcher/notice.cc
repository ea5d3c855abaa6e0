#include "launcher/notice.h"

#include <fmt/format.h>

#include "common/base/check.h"
#include "common/base/json.h"
#include "common/base/text.h"
#include "launcher/json_fields.h"
#include "launcher/progress.h"

namespace dtf::launcher {

namespace {

std::vector<std::string> textsOf(const Json& line, const char* key) {
  std::vector<std::string> texts;
  const Json* const found = line.find(key);
  if (found == nullptr || !found->isArray()) return texts;
  for (const Json& item : *found)
    if (item.isString()) texts.push_back(item.asString());
  return texts;
}

constexpr size_t kPsMax = 1024;  // more than a cluster has

std::vector<uint64_t> countsOf(const Json& line, const char* key) {
  std::vector<uint64_t> counts;
  const Json* const found = line.find(key);
  if (found == nullptr || !found->isArray() || found->size() > kPsMax) return counts;
  for (const Json& count : *found) counts.push_back(count.isUnsigned() ? count.asUint64() : 0);
  return counts;
}

}  // namespace

std::optional<StragglerNotice> stragglerOf(const Json& object) {
  const Json* const found = object.find("straggler");
  if (found == nullptr || !found->isObject() || textOf(*found, "worker").empty())
    return std::nullopt;
  return StragglerNotice{textOf(*found, "worker"), textOf(*found, "phase"),
                         numberOf(*found, "excess_ms").value_or(0)};
}

Json stragglerJson(const std::optional<StragglerNotice>& straggler) {
  if (!straggler) return nullptr;
  DTF_CHECK(!straggler->worker.empty());
  return {{"worker", straggler->worker},
          {"phase", straggler->phase},
          {"excess_ms", straggler->excess_ms}};
}

std::string stragglerText(const StragglerNotice& straggler) {
  return fmt::format("{}: {}, {} ms a step more than the others", printable(straggler.worker),
                     printable(straggler.phase), countText(straggler.excess_ms));
}

std::optional<Notice> parseNotice(std::string_view line) {
  Json parsed = Json::parseOrNull(line);
  if (!parsed.isObject()) return std::nullopt;
  const std::string event = textOf(parsed, "event");
  if (event == "ready") return ReadyNotice{};
  if (event == "finished") return FinishedNotice{};
  if (event == "waiting") return WaitingNotice{textOf(parsed, "for")};
  if (event == "failed") return FailedNotice{textOf(parsed, "code"), textOf(parsed, "message")};
  if (event == "worker_lost") {
    const Json* const lease = parsed.find("lease");
    if (lease == nullptr || *lease != true) return std::nullopt;
    return WorkerLostNotice{textOf(parsed, "worker"),
                            static_cast<uint32_t>(countOf(parsed, "attempt").value_or(0))};
  }
  if (event == "model")
    return ModelNotice{countOf(parsed, "variables").value_or(0),
                       countOf(parsed, "parameters").value_or(0), countsOf(parsed, "ps_bytes")};
  if (event == "left_out")
    return LeftOutNotice{countOf(parsed, "records").value_or(0), textsOf(parsed, "reasons")};
  if (event == "evaluation")
    return EvaluationNotice{countOf(parsed, "step").value_or(0), numberOf(parsed, "loss"),
                            numberOf(parsed, "accuracy"), metricsOf(parsed)};
  if (event == "restored")
    return RestoredNotice{countOf(parsed, "step").value_or(0), countOf(parsed, "steps").value_or(0),
                          textOf(parsed, "saved"), textsOf(parsed, "changes")};
  if (event == "went_back") {
    const Json* const snapshot = parsed.find("snapshot");
    return WentBackNotice{countOf(parsed, "step").value_or(0),
                          countOf(parsed, "steps_lost").value_or(0),
                          snapshot != nullptr && *snapshot == true, textOf(parsed, "reason")};
  }
  if (event == "checkpoint")
    return CheckpointNotice{countOf(parsed, "step").value_or(0), numberOf(parsed, "seconds"),
                            numberOf(parsed, "stall_seconds")};
  if (event == "progress") {
    return ProgressNotice{countOf(parsed, "step").value_or(0),
                          countOf(parsed, "steps").value_or(0),
                          numberOf(parsed, "loss"),
                          numberOf(parsed, "examples_per_second"),
                          numberOf(parsed, "eval_accuracy"),
                          stragglerOf(parsed),
                          countOf(parsed, "batches").value_or(0),
                          numberOf(parsed, "exchange_seconds").value_or(0)};
  }
  if (event == "result") {
    parsed.erase("event");
    const Json* const checkpoint = parsed.find("checkpoint");
    const bool failed = checkpoint != nullptr && !textOf(*checkpoint, "degraded").empty();
    return ResultNotice{parsed.dump(), textOf(parsed, "outcome"), !failed};
  }
  return std::nullopt;
}

}  // namespace dtf::launcher
