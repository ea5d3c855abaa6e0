#pragma once

// The verbs for a job with `launch: {via: systemd}`.

#include <cstdint>
#include <filesystem>
#include <memory>

#include "common/cluster/spec.h"
#include "common/net/credentials.h"
#include "launcher/launch_plan.h"
#include "launcher/options.h"
#include "launcher/systemd/unit_job.h"

namespace dtf::launcher {

// `up`: writes and starts the job's units, and follows them to the end; with --detach until all are
// ready. A dtf-launch that is killed leaves them to systemd. With --dry-run prints them. Returns
// the exit code of the process.
// Blocks: until the job has ended.
// Errors: those of UnitJob and RunFolder, before anything runs.
int upAsUnits(const cluster::JobSpec& job, const Options& options, const PlanInput& input,
              const UnitStart& start, const net::Credentials& credentials);

// `stop`: has systemd stop the job's units, waits until they have ended, and removes them. False:
// the job has none that run. `run_dir` is the run's.
// Errors: kDeadline; kUnavailable when they are another run's, and when a host can't be reached,
// once the units of the others have ended; those of UnitJob.
bool stopUnits(const cluster::JobSpec& job, const std::filesystem::path& run_dir);

// Whether any unit of a run is there; kUnknown: a host is silent.
enum class UnitsLife : uint8_t { kNone, kSome, kUnknown };

// `logs` and `status`: brings what other hosts have of a run, where nobody follows it.
// Threads: thread-compatible.
class UnitReader {
 public:
  // `run_dir` is the run's. A host that can't be reached is told of on stderr, and left out; where
  // none can, there is nothing to bring.
  // Blocks: on systemctl and on other hosts, a host that isn't there 10 s.
  // Errors: those of UnitJob of a host that answers.
  UnitReader(const cluster::JobSpec& job, const std::filesystem::path& run_dir);
  // kNone also for a job that is none of units on several hosts, and where they are another run's.
  // That a host is silent is told on stderr, once.
  // Blocks: on other hosts, seconds at most, as long as nothing comes.
  UnitsLife bring();

 private:
  std::unique_ptr<UnitJob> units_;
  bool is_silence_told_ = false;
};

// `attach`: shows the job's units until they have ended. False: it has none that run.
// Errors: kUnavailable when they are another run's; those of UnitJob.
bool showUnits(cluster::JobSpec job, const Options& options, const std::filesystem::path& run_dir,
               const net::Credentials& credentials);

}  // namespace dtf::launcher
