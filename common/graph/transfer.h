#pragma once

// What takes the place of an edge between two parts of a graph: a _Send in one, a _Recv in the
// other, under one key. Internal to the partitioners.

#include <string>

#include "common/graph/graph.h"

namespace dtf::graph {

struct Transfer {
  std::string edge;  // "<node>:<output>", "^<node>" for control
  std::string source_device, reader_device;
  std::string send_name, recv_name;

  // TensorFlow's without the incarnation, which is known only at run time:
  // "<source device>;<reader's device>;<edge>;0:0".
  std::string key() const { return source_device + ";" + reader_device + ";" + edge + ";0:0"; }
};

// Adds a _Send of `local` to `source` and its _Recv to `reader`. Gives what arrives.
Output addTransfer(Graph& source, const Output& local, Graph& reader, const Transfer& transfer);

// A scalar that exists when `before` has ended: what a control edge between parts sends.
Output addDone(Graph& part, NodeId before, std::string name, std::string device);

}  // namespace dtf::graph
