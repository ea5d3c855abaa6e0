#pragma once

// Reverse-mode differentiation: adds to a graph the nodes that compute the gradients of a loss.

#include <optional>
#include <span>
#include <vector>

#include "common/graph/gradients.h"
#include "common/graph/graph.h"

namespace dtf::graph {

// d(loss) / d(t) for each t in `with_respect_to`, in that order, as float32 tensors of t's shape.
//
// Only nodes on a path of float32 tensors from a `with_respect_to` to the loss get gradients, so
// the inputs of the first layer cost nothing, and what was chosen, as by ArgMax, is a constant.
// Where a tensor has several consumers their contributions meet in one AddN, the last consumer
// created first: the order of additions, and so every bit of the result, depends only on the graph.
// New nodes lie under "gradients/" and carry the device of the forward node they belong to.
//
// Errors: kBadConfig when the loss is no float32 scalar, when some t is no float32 tensor or the
// loss doesn't depend on it (the message names t), or when a node on the path has no gradient (the
// message names the node and its op). After an error the graph may hold nodes that nothing uses.
std::vector<Output> addGradients(Graph& graph, Output loss, std::span<const Output> with_respect_to,
                                 const GradientTable& table = standardGradients());

// The product of a vector with the Jacobian matrix: for each of `xs` the sum over i of
// dys[i] * d(ys[i]) / d(x); nullopt where no y depends on it. That is the gradient of
// whatever ys go into, when dys are its gradients: of the same specs, one for each y, and made
// before this call by nodes that no x leads to. Otherwise as addGradients().
// Errors: kBadConfig for a y or an x that is not float32, and for a node without gradient.
std::vector<std::optional<Output>> addVectorJacobianProduct(
    Graph& graph, std::span<const Output> ys, std::span<const Output> dys,
    std::span<const Output> xs, const GradientTable& table = standardGradients());

}  // namespace dtf::graph
