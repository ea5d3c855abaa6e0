#include "common/runtime/fused_softmax.h"

#include "common/base/check.h"
#include "common/runtime/fused_softmax_isa.h"
#include "common/runtime/processor.h"

namespace dtf::runtime {
namespace {

int64_t roundUp(int64_t n, int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

const FusedSoftmaxPasses& passesFor(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::kV4) return v4::kFusedSoftmaxPasses;
  if (isa == Isa::kV3) return v3::kFusedSoftmaxPasses;
#endif
  return baseline::kFusedSoftmaxPasses;
}

}  // namespace

FusedSoftmaxWorkspace fusedSoftmaxWorkspace(int64_t batch, int64_t inputs, int64_t classes) {
  FusedSoftmaxWorkspace at{};
  // Rows a multiple of 1 KiB apart would all fall into a few sets of the cache.
  const int64_t padded = roundUp(inputs, 16);
  at.row_stride = padded % 256 == 0 ? padded + 16 : padded;
  at.rows = at.weights + classes * padded;
  at.logits = at.rows + batch * at.row_stride;
  at.losses = at.logits + classes * roundUp(batch, 16);
  at.elements = at.losses + roundUp(batch, 16);
  return at;
}

size_t fusedSoftmaxWorkspaceBytes(int64_t batch, int64_t inputs, int64_t classes) {
  return static_cast<size_t>(fusedSoftmaxWorkspace(batch, inputs, classes).elements) *
         sizeof(float);
}

void fusedSoftmax(const Processor& cpu, const FusedSoftmaxStep& step) {
  DTF_CHECK(step.batch > 0 && step.inputs > 0);
  DTF_CHECK(step.classes > 0 && step.classes <= kFusedSoftmaxClassesMax);
  DTF_CHECK_MSG((step.bytes == nullptr) != (step.floats == nullptr), "one kind of inputs");
  DTF_CHECK(step.weights != nullptr && step.bias != nullptr && step.labels != nullptr);
  DTF_CHECK(step.workspace != nullptr);
  const FusedSoftmaxWorkspace at = fusedSoftmaxWorkspace(step.batch, step.inputs, step.classes);
  const FusedSoftmaxPasses& passes = passesFor(cpu.isa);
  passes.weights(step, at);
  cpu.forRanges(step.batch, step.inputs * step.classes * kMultiplyAddWork, kFusedSoftmaxRows,
                Processor::kPartsEach,
                [&](int64_t begin, int64_t end, int) { passes.logits(step, at, begin, end); });
  passes.softmax(step, at);
  if (step.weights_gradient == nullptr) return;
  cpu.forRanges(step.inputs, step.batch * step.classes * kMultiplyAddWork, kFusedSoftmaxInputs,
                Processor::kPartsEach,
                [&](int64_t begin, int64_t end, int) { passes.gradient(step, at, begin, end); });
}

}  // namespace dtf::runtime
