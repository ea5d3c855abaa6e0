#pragma once

// The gradients of the workers of one host, summed in memory that they share, and the reply to them
// all. README.md, "The sum of a host", has the design.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/base/joined_memory.h"
#include "common/base/mutex.h"
#include "common/replication/step_state.h"

namespace dtf::exchange {

// The reason for which every wait of a worker ends, from another thread.
// Threads: thread-safe.
class EndOfWaits {
 public:
  // The first error stays.
  void end(const Error& error);
  // Throws the error, if there is one.
  void throwIfEnded() const;

 private:
  mutable Mutex mutex_;
  std::optional<Error> error_ DTF_GUARDED_BY(mutex_);
};

struct HostSumOptions {
  std::filesystem::path file;   // of JoinedMemory, the same for all workers of the host
  std::vector<uint32_t> ranks;  // of the host, ascending; the first is the leader
  uint32_t rank = 0;            // of this worker
  uint64_t identity = 0;        // of the job, so that two jobs never share the file
  Duration start_timeout{};     // to join the memory
  Duration step_timeout{};      // for the gradient of a worker that runs, beside the next
  Duration rejoin_timeout{};    // for a worker that doesn't run to be back
  std::shared_ptr<EndOfWaits> ended = std::make_shared<EndOfWaits>();
  std::function<void(const std::string& what, Duration waited)> on_waiting{};  // every few seconds
};

// A step in one line of history.
struct SumStep {
  uint64_t epoch = 0;
  uint64_t step = 0;
  auto operator<=>(const SumStep&) const = default;
};

// One worker's place in the sum. The members (all but the leader) hand over gradients and await
// replies. The leader collects the gradients of a step, sums and exchanges them, and publishes the
// reply. State is in the shared memory, so a process that follows another goes on where it was.
//
// Owns: the shared memory: for each member two gradients, and two versions of the parameters.
// Threads: thread-compatible; HostSumOptions::ended ends waits from any thread.
// Blocks: collect() and awaitReply(), which log the worker that they wait for.
// Errors: kDeadline with the name of that worker; kBadConfig if it has never joined the memory; the
// error of `ended`; on a member, the error with which the leader has failed.
class HostSum {
 public:
  // `elements`: of each shard. Blocks: as JoinedMemory. Errors: likewise.
  HostSum(HostSumOptions options, std::vector<uint64_t> elements);
  ~HostSum();

  bool leads() const { return place_ == 0; }
  size_t workers() const { return options_.ranks.size(); }

  // ---- members

  // Returns the memory for the next gradient of a shard, until handOver().
  float* gradient(uint32_t shard);
  // Notes that the gradient is whole, unless an earlier process of this worker has handed over the
  // same one, which the leader may be reading.
  void handOver(const SumStep& step, float loss);
  // Waits for the reply to the gradient of `step`. Its outcome is kWentBack if it has another
  // epoch. A leader that runs has no deadline: it waits by deadlines of its own.
  replication::StepState awaitReply(const SumStep& step);
  // Returns the parameters of the last reply; valid until the next awaitReply().
  const float* parameters(uint32_t shard) const;

  // ---- the leader

  // Waits until every member has handed over its gradient of `step`, and returns the losses in the
  // order of the members. nullopt: some member has later parameters, of this epoch or of another.
  std::optional<std::vector<float>> collect(const SumStep& step);
  // Returns the collected gradient of member `index`, counted from 0.
  const float* collected(size_t index, uint32_t shard) const;
  // Passes a reply and its parameters, one array for each shard, to the members. `answers`: the
  // step of the exchange; of a pull the step before. Does nothing if they have it already. Blocks:
  // until no member reads the version before the last.
  void publish(const replication::StepState& state, const std::optional<SumStep>& answers,
               std::span<const float* const> parameters);
  // Passes the error with which this process ends to the members. They throw it at once, unless it
  // concerns this process alone: then they wait for the next one, and name it in their messages.
  void fail(const Error& error);

 private:
  struct Head;
  struct Seat;
  struct Reply;
  struct Failure;
  using Missing = std::function<std::optional<uint32_t>()>;

  Head& head() const;
  Seat& seatOf(uint32_t place) const;
  float* arena(size_t number, uint32_t shard) const;
  std::optional<replication::StepState> replyTo(const SumStep& step);
  std::optional<Error> failureOfLeader() const;
  void throwIfLeaderFailed() const;
  bool isAhead(const SumStep& step) const;
  void join(uint64_t bytes);
  void await(const std::string& what, const Missing& missing);
  std::string absenceText(uint32_t place) const;
  void checkDeadline(const std::string& what, uint32_t place, bool is_there, Duration waited) const;

  const HostSumOptions options_;
  const uint32_t place_;  // among the ranks of the host
  const std::vector<uint64_t> elements_;
  std::vector<uint64_t> offsets_;  // of each shard in an arena, in bytes
  uint64_t arena_bytes_ = 0;
  std::vector<uint64_t> collected_;  // the numbers of the members' gradients
  uint64_t failures_before_ = 0;     // of leaders, before this process joined
  std::unique_ptr<JoinedMemory> memory_;
};

}  // namespace dtf::exchange
