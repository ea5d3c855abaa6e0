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

// One start of a task's process: 24 bits of attempt, then 40 random ones. A peer that comes back with
// another incarnation is another process. Value type.
struct Incarnation {
  uint64_t value = 0;  // never 0, on the wire
  auto operator<=>(const Incarnation&) const = default;

  static constexpr uint32_t kAttemptMax = (1U << 24) - 1;

  // `attempt`: counted by whoever starts the task, 1 for the first; 0: nobody counts. The rest comes
  // from the kernel's random source.
  static Incarnation random(uint32_t attempt = 0);

  uint32_t attempt() const { return static_cast<uint32_t>(value >> 40); }
  // Whether `other` was started after this process, by the count of who started both. Where nobody
  // counted, the one that comes later is taken for the newer one.
  bool isBefore(Incarnation other) const {
    return attempt() > 0 && other.attempt() > 0 && attempt() < other.attempt();
  }
};

}  // namespace dtf
