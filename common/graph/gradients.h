#pragma once

// Gradients by op: a table from the op's name to a function that adds nodes. The table is an
// object, like the catalogue, without static registration.

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/graph/builder.h"
#include "common/graph/graph.h"

namespace dtf::graph {

// The arguments of a gradient function.
struct GradientRequest {
  const Node& node;  // the forward node
  // d(loss) / d(output), one per output; nullopt if the loss doesn't depend on it. At least one is
  // set.
  std::span<const std::optional<Output>> output_gradients;
  const std::vector<bool>& wanted;  // one per input: only these gradients are used
};

// Adds the nodes that compute d(loss) / d(input) to the builder's graph. Returns one gradient per
// input of the node; nullopt for an input that is not wanted or has no influence.
// Errors: kBadConfig if this use of the op has no gradient.
using GradientFunction =
    std::function<std::vector<std::optional<Output>>(Builder&, const GradientRequest&)>;

// Immutable once filled; then thread-safe.
class GradientTable {
 public:
  void add(std::string op, GradientFunction gradient);      // DTF_CHECKs that the op is new
  const GradientFunction* find(std::string_view op) const;  // nullptr: not differentiable

 private:
  std::map<std::string, GradientFunction, std::less<>> functions_;
};

// The gradients of standardOps(). Without one: Accuracy, ArgMax, OneHot, Normalise, MulRows,
// FusedBatchNormInference, comparisons, and gradients themselves; sources need none. Built once,
// for the life of the process.
const GradientTable& standardGradients();

}  // namespace dtf::graph
