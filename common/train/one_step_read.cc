#include "common/train/one_step_read.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <thread>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/train/replica_pause.h"

namespace dtf::train {
namespace {

// Between two looks at the versions: a step is completed in about this time.
constexpr auto kVersionsEvery = std::chrono::milliseconds(2);

// The steps that variables have taken, each with one of the variables.
using TakenSteps = std::map<int64_t, std::string>;

TakenSteps takenSteps(const std::vector<Tensor>& values, const std::vector<std::string>& fetches,
                      const std::vector<std::string>& versions) {
  TakenSteps steps;
  for (const std::string& version : versions) {
    const auto at = std::find(fetches.begin(), fetches.end(), version);
    DTF_CHECK_MSG(at != fetches.end(), version);
    const auto place = static_cast<size_t>(at - fetches.begin());
    steps.emplace(values.at(place).as<int64_t>()[0], version);
  }
  return steps;
}

[[noreturn]] void failHalfTaken(const TakenSteps& steps, Duration patience, bool is_paused) {
  throw Error(
      ErrorCode::kUnavailable,
      fmt::format("a step stayed half taken for {:g} s {} ('{}' is {}, but '{}' is {}): {}; "
                  "nothing was saved",
                  toSeconds(patience),
                  is_paused ? "while the replicas were paused to save the variables"
                            : "without a pause of the replicas",
                  steps.begin()->second, steps.begin()->first, steps.rbegin()->second,
                  steps.rbegin()->first,
                  is_paused ? "its clients are lost or stopped"
                            : "its clients are lost or stopped, or take steps all the time"));
}

}  // namespace

std::vector<Tensor> readOfOneStep(engine::Session& session, const std::vector<std::string>& fetches,
                                  const std::vector<std::string>& versions,
                                  const OneStepReadOptions& options) {
  const SystemClock system;
  const Clock& clock = options.clock == nullptr ? system : *options.clock;
  const TimePoint deadline = clock.now() + options.patience;
  const bool pauses = options.pauses_replicas && ReplicaPause::isIn(session.graph());
  std::optional<ReplicaPause> pause;
  for (;;) {
    std::vector<Tensor> values = session.run({}, fetches);
    TakenSteps steps = takenSteps(values, fetches, versions);
    if (steps.size() <= 1) return values;
    if (pauses && !pause) pause.emplace(session);
    // The values may be large, the versions are few bytes.
    while (steps.size() > 1) {
      const TimePoint now = clock.now();
      if (now >= deadline) failHalfTaken(steps, options.patience, pauses);
      const TimePoint next = std::min(deadline, now + kVersionsEvery);
      if (options.wait_until)
        options.wait_until(next);
      else
        std::this_thread::sleep_until(next);
      steps = takenSteps(session.run({}, versions), versions, versions);
    }
  }
}

}  // namespace dtf::train
