#include "launcher/model_copy.h"

#include <fmt/format.h>

#include <filesystem>

#include "launcher/report.h"
#include "launcher/task_monitor.h"

namespace dtf::launcher {

bool wantsModel(const cluster::LaunchSpec& launch, std::string_view outcome) {
  const bool is_stopped = outcome == outcomeName(Outcome::kStopped);
  const bool is_slurm = launch.via == cluster::LaunchSpec::Via::kSlurm;
  return launch.byAgents() && launch.fetch_model &&
         (outcome == outcomeName(Outcome::kDone) || (is_stopped && !is_slurm));
}

std::string noModelText(const cluster::JobSpec& job, std::string_view outcome, uint64_t step,
                        const Error& error) {
  const std::filesystem::path folder = std::filesystem::absolute(job.run_dir).lexically_normal() /
                                       "checkpoints" / ("step-" + std::to_string(step));
  const bool stays = job.train && job.train->checkpoint && job.train->checkpoint->stay;
  const bool is_done = outcome == outcomeName(Outcome::kDone);
  return fmt::format(
      "warning: the model was not copied here: {}\n  it is on {}, in {}{}\n  the same command once "
      "more {}; fetch_model: false in 'launch' leaves it there",
      error.message(), otherHostOf(job, kChief), folder.string(),
      stays ? ", and its shards are with the ps" : "",
      is_done ? "copies it, and trains nothing"
              : "trains on from it, and copies the model at its end");
}

}  // namespace dtf::launcher
