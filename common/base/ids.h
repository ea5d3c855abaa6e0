#pragma once

// Who is who in a job. Two integers that could be swapped are two types.

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dtf {

// The two jobs of a cluster, TensorFlow's words.
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

// The worker that initialises, evaluates and reports: worker/0.
inline constexpr TaskId kChief{JobKind::kWorker, 0};

// One start of a task's process: 16 bits of attempt, 40 of the time of day in ticks of 1/256 s
// since 2020, 8 that tell apart what starts within one tick. A peer that comes back with another
// incarnation is another process. Value type.
struct Incarnation {
  uint64_t value = 0;  // never 0, on the wire
  auto operator<=>(const Incarnation&) const = default;

  static constexpr uint32_t kAttemptMax = (1U << 16) - 1;
  static constexpr int kAttemptShift = 48;
  static constexpr int kTicksShift = 8;

  // `attempt`: counted by whoever starts the task, 1 for the first; 0: nobody counts.
  static Incarnation ofNow(uint32_t attempt = 0);
  static constexpr Incarnation of(uint32_t attempt, uint64_t ticks, uint8_t tie) {
    return {uint64_t{attempt} << kAttemptShift | ticks << kTicksShift | tie};
  }

  uint32_t attempt() const { return static_cast<uint32_t>(value >> kAttemptShift); }
  uint64_t ticks() const {
    return value << (64 - kAttemptShift) >> (64 - kAttemptShift + kTicksShift);
  }
  // Whether `other` was started after this process, by the count of who started both. False where
  // nobody counted.
  bool isCountedBefore(Incarnation other) const {
    return attempt() > 0 && other.attempt() > 0 && attempt() < other.attempt();
  }
  // The same, and where the counts don't tell, by the time of day, which may have been set back
  // between the two: to be asked only while that costs no more than a second start.
  bool isBefore(Incarnation other) const {
    return isCountedBefore(other) || (!other.isCountedBefore(*this) && ticks() < other.ticks());
  }
};

}  // namespace dtf
