#pragma once

// What every op of standardOps() means, in double precision and with no thought for speed:
// gradients are checked against it, and so is every device's kernel.

#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "common/graph/graph.h"

namespace dtf::graph::testing {

// Values of tensors, row-major; integers as doubles. Any tensor can be fed, and what is fed is not
// computed: variables, placeholders, _Recv and _Pull must be.
using Values = std::vector<double>;
using Feeds = std::map<Output, Values>;

// The values of `fetches`, in that order. Only what they need is computed.
// Errors: throws std::invalid_argument for a feed of the wrong size, a source that is not fed, a
// label out of range, or an op without a definition here.
std::vector<Values> evaluate(const Graph& graph, const Feeds& feeds,
                             std::span<const Output> fetches);
Values evaluate(const Graph& graph, const Feeds& feeds, Output fetch);

// Whether evaluate() can compute the op. False for what must be fed and for what has no output.
bool isDefined(std::string_view op);

}  // namespace dtf::graph::testing
