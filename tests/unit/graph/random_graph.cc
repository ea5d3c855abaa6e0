#include "tests/unit/graph/random_graph.h"

#include "common/graph/op_def.h"

namespace dtf::graph::testing {
namespace {

Output addSource(Builder& b, Random& random, Feeds& feeds, int index) {
  const Shape shape({kSide, kSide});
  const bool variable = random.below(2) == 0;
  const Output source =
      variable ? b.variable("variable_" + std::to_string(index), shape)
               : b.placeholder("placeholder_" + std::to_string(index), DType::kFloat32, shape);
  for (int i = 0; i < kSide * kSide; ++i) feeds[source].push_back(random.uniform(-1.0f, 1.0f));
  return source;
}

Output addOp(Builder& b, Random& random, const std::vector<Output>& tensors) {
  const auto any = [&random, &tensors] { return tensors[random.below(tensors.size())]; };
  switch (random.below(7)) {
    case 0:
      return b.matMul(any(), any(), random.below(2) == 0, random.below(2) == 0);
    case 1:
      return b.add(any(), any());
    case 2:
      return b.tanh(any());
    case 3:
      return b.softmax(any());
    case 4:
      return b.addN({any(), any(), any()});
    case 5:
      return b.mul(any(), any());
    default:
      return b.sigmoid(any());
  }
}

}  // namespace

RandomGraph makeRandomGraph(Random& random, int nodes, const std::vector<std::string>& devices) {
  RandomGraph result{Graph(standardOps()), {}, {}};
  Builder b(result.graph);
  for (int i = 0; i < nodes; ++i) {
    const auto device = b.deviceScope(devices[random.below(devices.size())]);
    const bool source = i == 0 || random.below(5) == 0;
    Output made = source ? addSource(b, random, result.feeds, i) : addOp(b, random, result.tensors);
    if (i > 0 && random.below(6) == 0) {
      const NodeId before = result.tensors[random.below(result.tensors.size())].node;
      made = {b.node("Identity", {made}, {}, {}, {before})};
    }
    result.tensors.push_back(made);
  }
  return result;
}

}  // namespace dtf::graph::testing
