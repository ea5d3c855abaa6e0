#pragma once

// What a task says to its launcher (common/base/notify.h), checked and typed. The lines come from
// another process, so anything may be in them: a line that makes no sense is dropped, never
// trusted.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/json.h"

namespace dtf::launcher {

inline constexpr size_t kNoticeBytesMax = 65536;  // a longer line is dropped

struct ReadyNotice {};

// The worker of a sync job that the others wait for.
struct StragglerNotice {
  std::string worker;    // "worker/1"
  std::string phase;     // "compute"
  double excess_ms = 0;  // of its own time in a step over the others'
};

struct ProgressNotice {
  uint64_t step = 0;
  uint64_t steps = 0;  // 0: unknown
  std::optional<double> loss;
  std::optional<double> examples_per_second;
  std::optional<double> eval_accuracy;
  std::optional<StragglerNotice> straggler{};
  // Of the chief since its process began: its batches, and the seconds of their exchanges.
  uint64_t batches = 0;
  double exchange_seconds = 0;
};

// What the chief made of the file, before training.
struct ModelNotice {
  uint64_t variables = 0;
  uint64_t parameters = 0;
  std::vector<uint64_t> ps_bytes;  // of the parameters on each ps
};

// Records of the data that can't be read, and are left out.
struct LeftOutNotice {
  uint64_t records = 0;
  std::vector<std::string> reasons;  // of the first
};

// Of the parameters at `step`.
struct EvaluationNotice {
  uint64_t step = 0;
  std::optional<double> loss;
  std::optional<double> accuracy;
  std::vector<std::pair<std::string, double>> metrics;  // the others, by name
};

struct RestoredNotice {
  uint64_t step = 0;  // that training goes on from
  uint64_t steps = 0;
  std::string saved;                 // when, as the checkpoint says
  std::vector<std::string> changes;  // settings since then: "name before -> now"
};

// A ps has lost its values: all have gone back.
struct WentBackNotice {
  uint64_t step = 0;
  uint64_t steps_lost = 0;
  bool to_snapshot = false;  // else to a checkpoint
  std::string reason;        // "ps/1 lost its values: all go back 37 steps to step 4963"
};

struct CheckpointNotice {
  uint64_t step = 0;
  std::optional<double> seconds;        // that saving it took, beside the training
  std::optional<double> stall_seconds;  // that it held up the training
};

// The chief's part of summary.json, as the text of a JSON object without "event".
struct ResultNotice {
  std::string json;
  std::string outcome{};  // "done" and so on
  bool is_saved = true;   // or the job keeps no checkpoints
};

// A worker has finished its part of the job. Its process ends, unless the other tasks still need
// the shard that it hosts.
struct FinishedNotice {};

// A ps has given up a worker's process, whose lease has run out.
struct WorkerLostNotice {
  std::string worker;    // "worker/1"
  uint32_t attempt = 0;  // which process of it; 0: not known
};

// A worker has waited for some seconds in a step.
struct WaitingNotice {
  std::string whom;  // "worker/1 in step 12 (says ps/0)"
};

struct FailedNotice {
  std::string code;  // errorCodeName()
  std::string message;
};

using Notice =
    std::variant<ReadyNotice, ModelNotice, RestoredNotice, WentBackNotice, CheckpointNotice,
                 ProgressNotice, EvaluationNotice, ResultNotice, WorkerLostNotice, WaitingNotice,
                 FailedNotice, LeftOutNotice, FinishedNotice>;

// Reads the field "straggler" as common/replication/phase_json.h writes it; nullopt: none.
std::optional<StragglerNotice> stragglerOf(const Json& object);
// As stragglerOf() reads it.
Json stragglerJson(const std::optional<StragglerNotice>& straggler);
// Returns "worker/1: compute, 4.1 ms a step more than the others", printable.
std::string stragglerText(const StragglerNotice& straggler);

// nullopt: not a line of the protocol. Thread-safe.
std::optional<Notice> parseNotice(std::string_view line);

}  // namespace dtf::launcher
