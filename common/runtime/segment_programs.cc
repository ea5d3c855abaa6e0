#include "common/runtime/segment_programs.h"

#include <span>
#include <utility>
#include <vector>

#include "common/runtime/step_segments.h"

namespace dtf::runtime {
namespace {

std::unique_ptr<Program> prepare(StepBody& step, const SegmentPlan& plan) {
  return step.device->prepare(std::span(step.launches).subspan(plan.begin, plan.end - plan.begin));
}

// Of a device with memory of its own: what is large enough moves beside computation.
void makeMovingSegments(StepBody& s, const TransferOptions& options) {
  std::vector<Transfer> uploads, downloads;
  const auto moves = [&](Binding& binding, const std::optional<size_t>& launch) {
    return binding.is_beside =
               binding.staged && binding.bytes >= options.beside_bytes && launch.has_value();
  };
  for (size_t i = 0; i < s.parameters.size(); ++i)
    if (Binding& binding = s.parameters[i]; moves(binding, binding.first_reader))
      uploads.push_back({i, binding.bytes, *binding.first_reader});
  for (size_t i = 0; i < s.gradients.size(); ++i)
    if (Binding& binding = s.gradients[i]; moves(binding, binding.last_writer))
      downloads.push_back({i, binding.bytes, *binding.last_writer});
  for (SegmentPlan& plan :
       planSegments(s.launches.size(), uploads, downloads, options.bucket_bytes))
    s.segments.push_back(
        {prepare(s, plan), std::move(plan.uploads), std::move(plan.downloads), {}, false});
}

// Of the host's memory: each says what it has made.
void makeToldSegments(StepBody& s, size_t bucket_bytes, std::optional<size_t> fetches) {
  std::vector<Transfer> made;
  for (size_t i = 0; i < s.gradients.size(); ++i)
    if (const Binding& binding = s.gradients[i]; binding.last_writer)
      made.push_back({i, binding.bytes, *binding.last_writer});
  for (SegmentPlan& plan : planSegments(s.launches.size(), {}, made, bucket_bytes, fetches)) {
    const bool makes_fetches = fetches ? plan.end == *fetches + 1 : plan.begin == 0;
    s.segments.push_back({prepare(s, plan), {}, {}, std::move(plan.downloads), makes_fetches});
  }
}

}  // namespace

void makeSegments(StepBody& step, const TransferOptions& options, std::optional<size_t> fetches) {
  step.tells_early = step.device->usesHostMemory() && options.told_bytes > 0;
  if (step.tells_early) return makeToldSegments(step, options.told_bytes, fetches);
  for (size_t i = 0; i < step.gradients.size(); ++i)
    if (step.gradients[i].last_writer) step.told_at_end.push_back(i);
  makeMovingSegments(step, options);
}

}  // namespace dtf::runtime
