#pragma once

// Reads of a shard's parameters beside training, by callers that are no workers of the job.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <variant>

#include "common/arena/parameter_version.h"
#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/replication/waiting_calls.h"
#include "common/shard/shard_options.h"
#include "common/shard/shard_values.h"

namespace dtf::shard {

// The number of readers of one shard: each may keep one version of the parameters in memory.
inline constexpr uint32_t kReadersMax = 16;
// The longest wait for a step to come. The reader then gets the shard's step.
inline constexpr Duration kReadWaitMax = std::chrono::seconds(2);

struct ReadReply {
  uint64_t step = 0;   // updates in the shard's values
  uint64_t epoch = 0;  // of the values
  // Null: the wanted step has passed, or has not come within kReadWaitMax.
  std::shared_ptr<const arena::ParameterVersion> parameters;
};
using ReadAnswer = std::variant<ReadReply, Error>;
using ReadCallback = std::function<void(ReadAnswer)>;  // called exactly once; must not throw

// No update waits for a reader.
// Owns: the callbacks that wait.
// Borrows: everything given to the constructor (must outlive this).
// Threads: loop-thread only.
// Blocks: while parameters are copied from a device, between two updates.
// Errors: kUnavailable: the shard has no values, or too many readers.
class ShardReaders {
 public:
  ShardReaders(const ShardOptions& options, const Clock& clock, replication::OutwardCalls& calls,
               ShardValues& values);

  // Returns the number of a new reader.
  uint32_t open();
  // The reader's call that waits is dropped.
  void close(uint32_t reader);
  // Answers with the parameters after exactly `step` updates, perhaps later; nullopt: with the
  // newest. An earlier call of the reader that waits gives way.
  void read(uint32_t reader, std::optional<uint64_t> step, ReadCallback callback);
  // Returns the newest parameters, with their elements. Precondition: the shard holds values.
  std::shared_ptr<const arena::ParameterVersion> newest() const;

  // Answers the calls that wait: the values are of another epoch, whose steps may be others.
  void beginEpoch();
  void failAll(const Error& error) { waiting_.answerAll(error); }
  void tick();

 private:
  using Waiting = replication::WaitingCalls<ReadAnswer, std::optional<uint64_t>>;

  void answerDue();
  ReadAnswer answerOf(bool with_parameters) const;
  ReadReply passed() const;

  const TaskId host_;  // of the shard
  replication::OutwardCalls& calls_;
  ShardValues& values_;
  std::set<uint32_t> readers_;
  uint32_t opened_ = 0;
  Waiting waiting_;             // by reader
  bool awaits_update_ = false;  // the coordinator calls answerDue() after its next update
};

}  // namespace dtf::shard
