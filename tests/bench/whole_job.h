#pragma once

// A whole job by dtf-launch, in a folder of its own.

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "common/base/json.h"
#include "tests/bench/benchmarks.h"

namespace dtf::bench {

// The summary of the job whose cluster file is `cluster_text(folder)`, with its run directory at
// `folder`/runs. Blocks until it has ended.
// Errors: kInternal with all that dtf-launch said when the job isn't done.
Json runJob(const std::function<std::string(const std::string& folder)>& cluster_text);

// What a job trains on digits, at a batch of 100.
struct JobModel {
  const char* name;
  const char* layers;
  uint64_t steps;  // of one measurement
  uint64_t quickSteps() const { return steps / 100 + 5; }
};

// From one whose step takes 50 us to one of 13 MB.
std::span<const JobModel> jobModels();

// Of one job of `model`.
struct JobShape {
  uint32_t ps = 1;  // 0: the one worker holds the parameters
  uint32_t workers = 1;
  const char* replication = "{mode: async}";
  bool shared_memory = true;  // else all travels through sockets, as between hosts
  bool stream_gradients = true;
};

// Global steps per second of `steps`, with one thread for each worker, all on this host. Blocks,
// and errors: as runJob().
double stepsPerSecond(const JobModel& model, const JobShape& shape, uint64_t steps);

// Of each model that `options` has: steps per second of jobs of both shapes, in turns, and the
// ratio of the second to the first.
Report besideEachOther(const BenchOptions& options, const std::string& table,
                       const std::string& second_name, const JobShape& first,
                       const JobShape& second);

}  // namespace dtf::bench
