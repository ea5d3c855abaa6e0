#pragma once

// The replacement of an edge between two parts of a graph: a _Send in one, a _Recv in the other,
// with the same key. Internal to the partitioners.

#include <string>

#include "common/graph/graph.h"

namespace dtf::graph {

struct Transfer {
  std::string edge;  // "<node>:<output>", "^<node>" for control
  std::string source_device, reader_device;
  std::string send_name, recv_name;

  // Returns TensorFlow's key without the incarnation, which is known only at run time:
  // "<source device>;<reader's device>;<edge>;0:0".
  std::string key() const { return source_device + ";" + reader_device + ";" + edge + ";0:0"; }
};

// Adds a _Send of `local` to `source` and its _Recv to `reader`. Returns the received tensor.
Output addTransfer(Graph& source, const Output& local, Graph& reader, const Transfer& transfer);

// Adds a scalar that is ready when `before` has ended: the message of a control edge between parts.
Output addDone(Graph& part, NodeId before, std::string name, std::string device);

}  // namespace dtf::graph
