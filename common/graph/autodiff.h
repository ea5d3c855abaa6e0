#pragma once

// Reverse-mode differentiation: adds the nodes that compute the gradients of a loss.

#include <optional>
#include <span>
#include <vector>

#include "common/graph/gradients.h"
#include "common/graph/graph.h"

namespace dtf::graph {

// Returns d(loss) / d(t) for each t in `with_respect_to`, in that order, as float32 tensors of t's
// shape.
// //
// Only nodes on a path of float32 tensors from a `with_respect_to` to the loss get gradients. So
// the inputs of the first layer cost nothing, and choices, such as ArgMax, are constants. If a
// tensor has several consumers, one AddN sums their contributions, starting with the last consumer.
// The order of additions, and so every bit of the result, depends only on the graph. New nodes are
// named "gradients/..." and have the device of their forward node.
// //
// Errors: kBadConfig if the loss is no float32 scalar, if some t is no float32 tensor or the loss
// doesn't depend on it (the message names t), or if a node on the path has no gradient (the message
// names the node and its op). After an error the graph may hold unused nodes.
std::vector<Output> addGradients(Graph& graph, Output loss, std::span<const Output> with_respect_to,
                                 const GradientTable& table = standardGradients());

// Returns the product of a vector with the Jacobian matrix: for each of `xs` the sum over i of
// dys[i] * d(ys[i]) / d(x); nullopt if no y depends on it. If dys are the gradients of a result
// with respect to ys, these are its gradients with respect to xs. `dys` has one tensor of equal
// spec for each y, from earlier nodes that do not depend on any x. Otherwise like addGradients().
// Errors: kBadConfig for a y or an x that is not float32, and for a node without gradient.
std::vector<std::optional<Output>> addVectorJacobianProduct(
    Graph& graph, std::span<const Output> ys, std::span<const Output> dys,
    std::span<const Output> xs, const GradientTable& table = standardGradients());

}  // namespace dtf::graph
