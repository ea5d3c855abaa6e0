// Branches and loops as graph/standard_control_ops.cc defines them.

#include <algorithm>

#include "common/graph/function.h"
#include "common/graph/while_op.h"
#include "tests/unit/graph/reference_kernels.h"

namespace dtf::graph::testing {
namespace {

std::vector<Values> call(const Function& function, const std::vector<Values>& arguments) {
  Feeds feeds;
  for (size_t i = 0; i < arguments.size(); ++i) feeds[{function.parameters()[i], 0}] = arguments[i];
  return evaluate(function.graph(), feeds, function.results());
}

Results ifThenElse(const Call& c) {
  std::vector<Values> arguments;
  for (size_t i = 1; i < c.inputs.size(); ++i) arguments.push_back(c.in(i));
  const char* const branch = c.in(0)[0] != 0 ? "then_branch" : "else_branch";
  return call(*c.node.attribute<FunctionRef>(branch), arguments);
}

size_t outputElements(const Call& c, size_t output) {
  return static_cast<size_t>(c.node.outputs[output].shape.elements());
}

// Writes slice `at` of an output that has `slices`.
void put(Values& stack, size_t slices, size_t at, const Values& slice) {
  std::copy(slice.begin(), slice.end(),
            stack.begin() + static_cast<std::ptrdiff_t>(at * (stack.size() / slices)));
}

Values sliceOf(const Values& stack, size_t slices, size_t at) {
  const auto width = static_cast<std::ptrdiff_t>(stack.size() / slices);
  const auto begin = stack.begin() + static_cast<std::ptrdiff_t>(at) * width;
  return {begin, begin + width};
}

bool goesOn(const Call& c, const std::vector<Values>& state, const std::vector<Values>& captured) {
  const auto& cond = c.node.attribute<FunctionRef>("cond");
  if (cond == nullptr) return true;
  std::vector<Values> arguments = state;
  arguments.insert(arguments.end(), captured.begin(), captured.end());
  return call(*cond, arguments)[0][0] != 0;
}

Results whileLoop(const Call& c) {
  const WhileOp op = WhileOp::of(c.node.attributes, c.inputs.size());
  const auto& body = *c.node.attribute<FunctionRef>("body");
  const auto slices = static_cast<size_t>(op.max_iterations);
  size_t limit = slices;
  if (op.counted) limit = static_cast<size_t>(std::clamp<double>(c.in(0)[0], 0, limit));
  std::vector<Values> state, captured;
  for (size_t i = op.firstCarried(); i < op.firstSequence(); ++i) state.push_back(c.in(i));
  for (size_t i = op.firstCaptured(); i < op.inputs; ++i) captured.push_back(c.in(i));
  Results outputs;
  for (size_t i = 0; i < c.node.outputs.size(); ++i)
    outputs.emplace_back(outputElements(c, i), 0.0);
  size_t ran = 0;
  for (; ran < limit && goesOn(c, state, captured); ++ran) {
    const size_t at = op.reverse ? limit - 1 - ran : ran;
    std::vector<Values> arguments = state;
    for (size_t i = op.firstSequence(); i < op.firstCaptured(); ++i)
      arguments.push_back(sliceOf(c.in(i), slices, at));
    arguments.insert(arguments.end(), captured.begin(), captured.end());
    for (size_t i = 0; op.keep_carried && i < op.carried; ++i)
      put(outputs[op.firstKept() + i], slices, at, state[i]);
    const std::vector<Values> results = call(body, arguments);
    state.assign(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(op.carried));
    for (size_t i = 0; i < op.stacked; ++i)
      put(outputs[op.firstStacked() + i], slices, at, results[op.carried + i]);
    for (size_t i = 0; i < op.summed; ++i)
      for (size_t k = 0; k < outputs[op.firstSummed() + i].size(); ++k)
        outputs[op.firstSummed() + i][k] += results[op.carried + op.stacked + i][k];
  }
  for (size_t i = 0; i < op.carried; ++i) outputs[i] = state[i];
  outputs[op.iterations()] = {static_cast<double>(ran)};
  return outputs;
}

}  // namespace

void addControlReferences(ReferenceKernels& kernels) {
  kernels["If"] = ifThenElse;
  kernels["While"] = whileLoop;
}

}  // namespace dtf::graph::testing
