#pragma once

// A whole job by dtf-launch, in a folder of its own.

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "common/base/json.h"
#include "tests/bench/benchmarks.h"

namespace dtf::bench {

// Runs the job with the cluster file `cluster_text(folder)` and its run directory at `folder`/runs;
// returns its summary. Blocks until it has ended.
// Errors: kInternal with all output of dtf-launch when the job isn't done.
Json runJob(const std::function<std::string(const std::string& folder)>& cluster_text);

// A job's model of the digits.
struct JobModel {
  const char* name;
  const char* layers;
  uint64_t steps;  // of one measurement
  uint32_t batch_size = 100;
  uint64_t quickSteps() const { return steps / 100 + 5; }
};

// From a model with a step of 50 us to one of 13 MB.
std::span<const JobModel> jobModels();

// The tasks and settings of a job of `model`.
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

// For each model that `options` selects: steps per second of jobs of both shapes, in turns, and the
// ratio of the second to the first.
Report besideEachOther(const BenchOptions& options, const std::string& table,
                       const std::string& second_name, const JobShape& first,
                       const JobShape& second);

}  // namespace dtf::bench
