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

// Returns the gradients written by launches, each with its last launch.
std::vector<Transfer> madeGradients(const StepBody& s) {
  std::vector<Transfer> made;
  for (size_t i = 0; i < s.gradients.size(); ++i) {
    const Binding& binding = s.gradients[i];
    if (binding.last_writer && binding.bytes > 0 && binding.kept == nullptr)
      made.push_back({i, binding.bytes, *binding.last_writer});
  }
  return made;
}

// Marks the tensors that are large enough to move beside the computation, on a device with its own
// memory.
std::vector<Transfer> markMoving(StepBody& s, const TransferOptions& options) {
  std::vector<Transfer> uploads;
  const auto moves = [&](Binding& binding, const std::optional<size_t>& launch) {
    return binding.is_beside =
               binding.staged && binding.bytes >= options.beside_bytes && launch.has_value();
  };
  for (size_t i = 0; i < s.parameters.size(); ++i)
    if (Binding& binding = s.parameters[i]; moves(binding, binding.first_reader))
      uploads.push_back({i, binding.bytes, *binding.first_reader});
  for (Binding& binding : s.gradients) moves(binding, binding.last_writer);
  return uploads;
}

std::vector<Transfer> movingOf(const StepBody& s, std::vector<Transfer> made) {
  std::erase_if(made, [&](const Transfer& one) { return !s.gradients[one.binding].is_beside; });
  return made;
}

}  // namespace

void makeSegments(StepBody& step, const TransferOptions& options, std::optional<size_t> fetches) {
  StepBody& s = step;
  const bool is_host = s.device->usesHostMemory();
  s.tells_early = options.told_bytes > 0;
  const std::vector<Transfer> uploads = markMoving(s, options), made = madeGradients(s);
  for (const Transfer& one : made) s.told_at_end.push_back(one.binding);
  if (!s.tells_early) fetches = std::nullopt;
  for (SegmentPlan& plan : planSegments(
           s.launches.size(), uploads, s.tells_early ? made : movingOf(s, made),
           is_host && s.tells_early ? options.told_bytes : options.bucket_bytes, fetches)) {
    Segment segment{
        prepare(s, plan), std::move(plan.uploads), {}, std::move(plan.downloads), false};
    segment.makes_fetches = fetches ? plan.end == *fetches + 1 : plan.begin == 0;
    for (const size_t i : segment.made)
      if (s.gradients[i].is_beside) segment.downloads.push_back(i);
    s.segments.push_back(std::move(segment));
  }
}

}  // namespace dtf::runtime
