#include "common/train/moved_epochs.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "common/base/check.h"
#include "common/base/text.h"
#include "common/train/checkpointer.h"

namespace dtf::train {

namespace {

std::string_view extraOf(const checkpoint::Manifest& saved, const char* key) {
  const auto found = saved.extra.find(key);
  return found == saved.extra.end() ? std::string_view() : found->second;
}

// 0: it is no whole number.
uint64_t numberOf(std::string_view text) {
  uint64_t number = 0;
  const char* const end = text.data() + text.size();
  return std::from_chars(text.data(), end, number).ptr == end ? number : 0;
}

}  // namespace

uint64_t stepsOfSaved(const checkpoint::Manifest& saved) {
  constexpr std::string_view kSteps = "steps=";
  for (const std::string& line : split(std::string(extraOf(saved, kSettingsKey)), '\n'))
    if (line.starts_with(kSteps)) return numberOf(std::string_view(line).substr(kSteps.size()));
  return 0;
}

std::string movedEpochsText(const checkpoint::Manifest& saved, const EpochsOfJob& job) {
  const uint64_t epochs = numberOf(extraOf(saved, kEpochsKey)), steps = stepsOfSaved(saved);
  if (job.epochs == 0 || epochs == 0 || steps == 0) return {};
  DTF_CHECK(job.steps % job.epochs == 0);
  const uint64_t before = steps / epochs, now = job.steps / job.epochs;
  const auto at = static_cast<double>(saved.global_step);
  if (before != now)
    return fmt::format(
        "steps of an epoch {} -> {}: epoch {:.2f} was reached, and training goes on at epoch "
        "{:.2f}",
        before, now, at / static_cast<double>(before), at / static_cast<double>(now));
  // The parts of batches that async workers have are others.
  const uint64_t workers = saved.worker_batches.size();
  if (job.shares_steps || workers == job.workers || saved.global_step >= job.steps) return {};
  return fmt::format(
      "workers {} -> {}: what was done of the epoch is dealt out evenly, so some of its examples "
      "are used twice or not at all",
      workers, job.workers);
}

}  // namespace dtf::train
