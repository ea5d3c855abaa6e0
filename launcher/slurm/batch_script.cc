#include "launcher/slurm/batch_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/base/check.h"
#include "common/base/text.h"
#include "launcher/launch_plan.h"

namespace dtf::launcher {

namespace {

// Beside what the last checkpoint may take: to end the tasks, and for Slurm's own clock.
constexpr int kEndSeconds = 30;

// Slurm's signal goes to this shell alone: it passes it on. A signal ends `wait` before dtf-launch
// has ended, so it waits again for as long as that is there: bash keeps the exit code. Of two
// signals within microseconds bash may drop the second, when dtf-launch has been told already. Who
// cancels the job (TERM), also after its time was up (USR1), doesn't want another turn. A job that
// has to make room for another one is told by its tasks alone, which save and end: whether it was
// preempted, Slurm is asked before this shell ends.
constexpr const char* kRequeue = R"(again=
trap 'again=no; kill -TERM $!' TERM
trap 'again=yes; kill -TERM $!' USR1
{} &
while kill -0 $! 2>/dev/null; do wait $!; done
wait $!
code=$?
if [ -z "$again" ] && scontrol show job "$SLURM_JOB_ID" | grep -q ' PreemptTime=[0-9]'; then again=yes; fi
if [ "$again" = yes ] && [ "$code" -eq 0 ]; then exec scontrol requeue "$SLURM_JOB_ID"; fi
exit "$code"
)";

}  // namespace

std::string batchScript(const cluster::JobSpec& job, const std::vector<std::string>& launch) {
  DTF_CHECK(!launch.empty());
  const cluster::SlurmSpec& slurm = job.launch.slurm;
  std::string script = "#!/bin/bash\n";
  const auto option = [&script](const std::string& text) { script += "#SBATCH " + text + "\n"; };
  option("--job-name=" + job.job);
  option(fmt::format("--nodes={}", std::max(slurm.nodes, 1U)));
  option("--ntasks-per-node=1");
  if (!slurm.time.empty()) option("--time=" + slurm.time);
  option(fmt::format("--signal=B:{}@{}", slurm.requeue ? "USR1" : "TERM",
                     static_cast<int>(std::ceil(job.timeouts.stop_seconds)) + kEndSeconds));
  option("--requeue");  // when a node fails: the job goes on from its checkpoint
  option("--open-mode=append");
  for (const std::string& each : slurm.options) option(each);
  std::vector<std::string> words;
  for (const std::string& word : launch) words.push_back(shellQuote(word));
  const std::string command = join(words, " ");
  return script + (slurm.requeue ? fmt::format(kRequeue, command) : "exec " + command + "\n");
}

}  // namespace dtf::launcher
