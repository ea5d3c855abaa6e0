#pragma once

// Identities in a job. Two integers that could be swapped are two types.

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dtf {

// The two jobs of a cluster, in TensorFlow's words.
enum class JobKind : uint8_t { kPs = 0, kWorker = 1 };

std::string_view jobName(JobKind job);                           // "ps", "worker"
std::optional<JobKind> parseJobName(std::string_view job_name);  // nullopt: no such job

// One task of the cluster: a process. Value type.
struct TaskId {
  JobKind job = JobKind::kWorker;
  uint32_t index = 0;
  auto operator<=>(const TaskId&) const = default;

  std::string name() const;    // "worker/1": logs, metrics, summary.json
  std::string device() const;  // "/job:worker/task:1": device strings, placement
};

// The tasks that host the shards of a job's parameters: one shard on each ps, then one on each of
// `workers`. Shard 0 and the leader's shard change places. Value type.
struct ShardHosts {
  uint32_t ps = 0;
  uint32_t workers = 0;  // 0: every shard is on a ps, however many there are
  // The place, in that order, of the task that hosts shard 0, and so counts the steps, keeps the
  // barriers and decides the set of a step.
  uint32_t leader = 0;
  bool operator==(const ShardHosts&) const = default;

  uint32_t size() const { return ps + workers; }
  // Returns the task that hosts `shard`, also of a shard that the job doesn't have.
  TaskId of(uint32_t shard) const {
    const uint32_t place = exchanged(shard);
    if (workers == 0 || place < ps) return {JobKind::kPs, place};
    return {JobKind::kWorker, place - ps};
  }
  // Returns the shard that `task` hosts; nullopt: none.
  std::optional<uint32_t> shardOf(TaskId task) const;
  std::string_view noun() const;  // of several: "ps", "workers", "ps and workers"

 private:
  // Returns the place of the task with a shard, and the shard of the task at a place.
  uint32_t exchanged(uint32_t number) const {
    return number == 0 ? leader : number == leader ? 0 : number;
  }
};

// The worker that initialises, evaluates and reports: worker/0.
inline constexpr TaskId kChief{JobKind::kWorker, 0};

// One start of a task's process: 16 bits of attempt, 40 bits of time in ticks of 1/256 s since
// 2020, and 8 bits that distinguish starts within one tick. A peer with another incarnation is
// another process. Value type.
struct Incarnation {
  uint64_t value = 0;  // never 0, on the wire
  auto operator<=>(const Incarnation&) const = default;

  static constexpr uint32_t kAttemptMax = (1U << 16) - 1;
  static constexpr int kAttemptShift = 48;
  static constexpr int kTicksShift = 8;

  // `attempt`: the number of this start, from 1, as the launcher counts; 0 if nothing counts
  // starts.
  static Incarnation ofNow(uint32_t attempt = 0);
  static constexpr Incarnation of(uint32_t attempt, uint64_t ticks, uint8_t tie) {
    return {uint64_t{attempt} << kAttemptShift | ticks << kTicksShift | tie};
  }

  uint32_t attempt() const { return static_cast<uint32_t>(value >> kAttemptShift); }
  uint64_t ticks() const {
    return value << (64 - kAttemptShift) >> (64 - kAttemptShift + kTicksShift);
  }
  // Returns whether `other` was started after this process, by attempt. False if either has no
  // count.
  bool isCountedBefore(Incarnation other) const {
    return attempt() > 0 && other.attempt() > 0 && attempt() < other.attempt();
  }
  // Like isCountedBefore(), but falls back to the time of day, which may have been set back in
  // between. Use it only where a wrong answer costs no more than a second start.
  bool isBefore(Incarnation other) const {
    return isCountedBefore(other) || (!other.isCountedBefore(*this) && ticks() < other.ticks());
  }
};

}  // namespace dtf
