#pragma once

// Reverse-mode differentiation: adds to a graph the nodes that compute the gradients of a loss.

#include <span>
#include <vector>

#include "common/graph/gradients.h"
#include "common/graph/graph.h"

namespace dtf::graph {

// d(loss) / d(t) for each t in `with_respect_to`, in that order, as float32 tensors of t's shape.
//
// Only nodes on a path from a `with_respect_to` to the loss get gradients, so the inputs of the
// first layer cost nothing. Where a tensor has several consumers their contributions meet in one
// AddN, the last consumer created first: the order of additions, and so every bit of the result,
// depends only on the graph. New nodes lie under "gradients/" and carry the device of the forward
// node they belong to.
//
// Errors: kBadConfig when the loss is no float32 scalar, when some t is no float32 tensor or the
// loss doesn't depend on it (the message names t), or when a node on the path has no gradient (the
// message names the node and its op). After an error the graph may hold nodes that nothing uses.
std::vector<Output> addGradients(Graph& graph, Output loss, std::span<const Output> with_respect_to,
                                 const GradientTable& table = standardGradients());

}  // namespace dtf::graph
