#include "common/graph/transfer.h"

#include <utility>

#include "common/base/check.h"

namespace dtf::graph {

Output addTransfer(Graph& source, const Output& local, Graph& reader, const Transfer& transfer) {
  DTF_CHECK(&source != &reader);  // a graph can't wait for itself
  const TensorSpec spec = source.spec(local);
  const Attributes attributes = {
      {"key", transfer.key()}, {"dtype", spec.dtype}, {"shape", spec.shape}};
  source.addNode({.name = transfer.send_name,
                  .op = "_Send",
                  .inputs = {local},
                  .attributes = attributes,
                  .control_inputs = {},
                  .device = transfer.source_device});
  return {reader.addNode({.name = transfer.recv_name,
                          .op = "_Recv",
                          .inputs = {},
                          .attributes = attributes,
                          .control_inputs = {},
                          .device = transfer.reader_device})};
}

Output addDone(Graph& part, NodeId before, std::string name, std::string device) {
  return {
      part.addNode({.name = std::move(name),
                    .op = "Const",
                    .inputs = {},
                    .attributes = {{"dtype", DType::kFloat32}, {"shape", Shape()}, {"value", 0.0}},
                    .control_inputs = {before},
                    .device = std::move(device)})};
}

}  // namespace dtf::graph
