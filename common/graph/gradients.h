#pragma once

// How each op's gradient is built: a table from the op's name to a function that adds nodes. The
// table is an object, as the catalogue is: nothing registers itself.

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

// What a gradient function is asked.
struct GradientRequest {
  const Node& node;  // the forward node
  // d(loss) / d(output), one per output; nullopt: the loss doesn't depend on it. At least one is
  // set.
  std::span<const std::optional<Output>> output_gradients;
  const std::vector<bool>& wanted;  // one per input: only these are used
};

// Adds to the builder's graph the nodes that compute d(loss) / d(input) and returns them, one per
// input of the node; nullopt for an input that is not wanted or has no influence.
// Errors: kBadConfig when this use of the op has no gradient.
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
// FusedBatchNormInference, comparisons, and what is a gradient itself; the sources need none. Made
// once, kept for the life of the process.
const GradientTable& standardGradients();

}  // namespace dtf::graph
