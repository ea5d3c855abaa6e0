#pragma once

// Cuts a placed graph into one graph per task and joins the pieces.

#include <map>

#include "common/base/ids.h"
#include "common/graph/graph.h"
#include "common/graph/placer.h"

namespace dtf::graph {

// Returns one graph per task with nodes, each in the source's creation order; nodes keep their
// names and get their full device. Edges between tasks:
//
//   edge                                       becomes
//   variable on ps -> a node elsewhere, or     _Pull, one per (variable, reading task), under the
//   any read of a split variable               variable's own name
//   gradient -> ApplyGradient of a variable    _Push under ApplyGradient's name, in the gradient's
//   on another ps, or of a split one           task; ApplyGradient itself is gone. Likewise
//                                              _PushSparse for ApplySparseGradient
//   any other tensor                           one _Send and one _Recv per (tensor, reading task),
//                                              shared by all of its readers there
//   a control edge                             the same with a scalar that says "done", one per
//                                              (node, waiting task)
//
// A control edge from a variable that is read by _Pull is dropped: a variable always exists, so
// waiting for it means nothing. Rendezvous keys are TensorFlow's without the incarnation, which is
// known only at run time:
// "<source device>;<reader's device>;<node>:<output>;0:0", "^<node>" for control. If readers are on
// several devices of one task, the key has the first reader's device.
// //
// Errors: kBadConfig with the node's name for a variable on ps that has control inputs: it is not
// computed in a step, so it cannot wait. DTF_CHECK if `placement` belongs to another graph.
std::map<TaskId, Graph> partition(const Graph& graph, const Placement& placement);

}  // namespace dtf::graph
