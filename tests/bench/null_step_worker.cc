#include "tests/bench/null_step_worker.h"

#include <fmt/core.h>

#include "tests/bench/child.h"
#include "tests/bench/null_stepper.h"
#include "tests/bench/raw_peer.h"

namespace dtf::bench {

void runNullStepWorker(const NullStepWorker& worker, const Fd& out) {
  std::vector<NullStepTimes> all;
  {
    const size_t bytes = worker.elements * sizeof(float) * worker.job.cluster.ps.size();
    RawClient raw(worker.raw_port, bytes);
    NullStepper stepper(worker.job, worker.rank, worker.elements);
    for (int i = 0; i < worker.repetitions; ++i) {
      NullStepTimes& times = all.emplace_back();
      stepper.meetOthers(fmt::format("dtf-{}", i));
      times.dtf = timeSteps(worker.steps, [&] { stepper.step(); });
      stepper.meetOthers(fmt::format("raw-{}", i));
      times.raw = timeSteps(worker.steps, [&] { raw.exchange(bytes); });
    }
    stepper.meetOthers("end");
    stepper.finish();
  }
  for (const NullStepTimes& times : all) {
    writeValues(out, times.dtf);
    writeValues(out, times.raw);
  }
}

std::vector<NullStepTimes> readNullStepTimes(const NullStepWorker& worker, const Fd& in,
                                             std::chrono::seconds deadline) {
  const auto steps = static_cast<size_t>(worker.steps);
  const std::vector<double> values =
      readValues(in, 2 * steps * static_cast<size_t>(worker.repetitions), deadline,
                 fmt::format("null step: worker {}", worker.rank));
  std::vector<NullStepTimes> all;
  for (auto from = values.begin(); from != values.end(); from += 2 * worker.steps)
    all.push_back({{from, from + worker.steps}, {from + worker.steps, from + 2 * worker.steps}});
  return all;
}

}  // namespace dtf::bench
