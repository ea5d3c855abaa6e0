// The branches and loops of builder.h.

#include <utility>

#include "common/base/check.h"
#include "common/graph/builder.h"
#include "common/graph/while_op.h"

namespace dtf::graph {

std::vector<Output> Builder::cond(Output condition, std::vector<Output> arguments,
                                  FunctionRef then_branch, FunctionRef else_branch) {
  arguments.insert(arguments.begin(), condition);
  const NodeId made =
      node("If", std::move(arguments),
           {{"then_branch", std::move(then_branch)}, {"else_branch", std::move(else_branch)}});
  std::vector<Output> results;
  for (size_t i = 0; i < graph_.node(made).outputs.size(); ++i)
    results.push_back({made, static_cast<int32_t>(i)});
  return results;
}

Builder::WhileResults Builder::whileLoop(WhileArguments loop) {
  std::vector<Output> inputs = loop.carried;
  inputs.insert(inputs.end(), loop.sequences.begin(), loop.sequences.end());
  inputs.insert(inputs.end(), loop.captured.begin(), loop.captured.end());
  const NodeId made = node("While", std::move(inputs),
                           {{"body", std::move(loop.body)},
                            {"cond", std::move(loop.cond)},
                            {"max_iterations", loop.max_iterations},
                            {"carried", static_cast<int64_t>(loop.carried.size())},
                            {"sequences", static_cast<int64_t>(loop.sequences.size())},
                            {"stacked", loop.stacked},
                            {"summed", loop.summed},
                            {"reverse", loop.reverse},
                            {"keep_carried", loop.keep_carried}});
  const Node& op = graph_.node(made);
  const WhileOp outputs = WhileOp::of(op.attributes, op.inputs.size());
  const auto range = [made](size_t first, size_t count) {
    std::vector<Output> list;
    for (size_t i = first; i < first + count; ++i) list.push_back({made, static_cast<int32_t>(i)});
    return list;
  };
  return {.carried = range(0, outputs.carried),
          .iterations = {made, static_cast<int32_t>(outputs.iterations())},
          .stacked = range(outputs.firstStacked(), outputs.stacked),
          .summed = range(outputs.firstSummed(), outputs.summed)};
}

}  // namespace dtf::graph
