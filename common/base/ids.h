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

// Random per process start. A peer that comes back with another incarnation is another process.
struct Incarnation {
  uint64_t value = 0;
  auto operator<=>(const Incarnation&) const = default;
  static Incarnation random();  // from the kernel's random source; never 0
};

}  // namespace dtf
