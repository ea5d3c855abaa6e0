#pragma once

// The meaning of every op of standardOps(), in double precision, slowly: the reference for
// gradients and for every device's kernels.

#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "common/graph/graph.h"

namespace dtf::graph::testing {

// Values of tensors, row-major; integers as doubles. Any tensor can be fed, and then isn't
// computed. Variables, placeholders, _Recv and _Pull must be fed.
using Values = std::vector<double>;
using Feeds = std::map<Output, Values>;

// Returns the values of `fetches`, in that order. Computes only the nodes that they need.
// Errors: throws std::invalid_argument for a feed of the wrong size, a source that is not fed, a
// label out of range, or an op without a definition here.
std::vector<Values> evaluate(const Graph& graph, const Feeds& feeds,
                             std::span<const Output> fetches);
Values evaluate(const Graph& graph, const Feeds& feeds, Output fetch);

// Returns whether evaluate() can compute the op: false for ops that must be fed and ops without
// outputs.
bool isDefined(std::string_view op);

}  // namespace dtf::graph::testing
