#include <algorithm>
#include <utility>

#include "common/api/guarded.h"
#include "common/api/handles.h"
#include "common/base/error.h"
#include "common/graph/autodiff.h"
#include "common/graph/function.h"

using dtf::api::guarded;

using dtf::api::checkHas;
using dtf::api::toOutput;

namespace {

bool has(const dtf::graph::Graph& graph, dtf_output output) {
  const auto& nodes = graph.nodes();
  return output.node >= 0 && std::cmp_less(output.node, nodes.size()) && output.index >= 0 &&
         std::cmp_less(output.index, nodes[static_cast<size_t>(output.node)].outputs.size());
}

// Returns whether programs may use the op; the others are inserted by dtf, or belong to a job's
// optimizer.
bool isForPrograms(std::string_view op) {
  return op[0] != '_' && op != "ApplyGradient" && op != "ApplySparseGradient";
}

std::string lineOf(const dtf::graph::OpDef& op) {
  static constexpr const char* kTypes[] = {"bool",  "int",   "double",  "text",
                                           "dtype", "shape", "function"};
  std::string line =
      op.name + "(" + (op.inputs < 0 ? "any number of" : std::to_string(op.inputs)) + " inputs)";
  for (const dtf::graph::AttributeDef& attribute : op.attributes) {
    line += " " + attribute.name + ":" + kTypes[static_cast<size_t>(attribute.type)];
    if (!attribute.required) line += "?";
  }
  return line + "\n";
}

// Reports a lack of memory later, when the node is added.
template <class Call>
void describe(dtf_node& node, const Call& call) noexcept {
  try {
    call();
  } catch (...) {
    node.failure = std::current_exception();
  }
}

}  // namespace

dtf::graph::Output dtf::api::toOutput(dtf_output output) {
  return {{output.node}, output.index};
}

void dtf::api::checkHas(const graph::Graph& graph, dtf_output output) {
  if (has(graph, output)) return;
  throw Error(ErrorCode::kBadConfig, "the graph has no node " + std::to_string(output.node) +
                                         " with an output " + std::to_string(output.index));
}

dtf_code dtf_graph_new(dtf_graph** made) {
  return guarded([&] { *made = new dtf_graph; });
}

dtf_code dtf_graph_copy(const dtf_graph* graph, dtf_graph** made) {
  return guarded([&] { *made = new dtf_graph{graph->graph}; });
}

void dtf_graph_free(dtf_graph* graph) {
  delete graph;
}

dtf_code dtf_node_new(dtf_graph* graph, const char* op, const char* name, dtf_node** made) {
  return guarded([&] {
    auto node = std::make_unique<dtf_node>();
    node->graph = graph;
    node->def.op = op;
    node->def.name = name == nullptr ? "" : name;
    *made = node.release();
  });
}

void dtf_node_input(dtf_node* node, dtf_output input) {
  describe(*node, [&] { node->def.inputs.push_back(toOutput(input)); });
}

void dtf_node_control_input(dtf_node* node, int32_t input) {
  describe(*node, [&] { node->def.control_inputs.push_back({input}); });
}

void dtf_node_device(dtf_node* node, const char* device) {
  describe(*node, [&] { node->def.device = device; });
}

void dtf_node_bool(dtf_node* node, const char* attribute, int value) {
  describe(*node, [&] { node->def.attributes[attribute] = value != 0; });
}

void dtf_node_int(dtf_node* node, const char* attribute, int64_t value) {
  describe(*node, [&] { node->def.attributes[attribute] = value; });
}

void dtf_node_double(dtf_node* node, const char* attribute, double value) {
  describe(*node, [&] { node->def.attributes[attribute] = value; });
}

void dtf_node_text(dtf_node* node, const char* attribute, const char* value) {
  describe(*node, [&] { node->def.attributes[attribute] = std::string(value); });
}

dtf_code dtf_node_dtype(dtf_node* node, const char* attribute, dtf_dtype value) {
  return guarded([&] { node->def.attributes[attribute] = dtf::api::dtypeOf(value); });
}

dtf_code dtf_node_shape(dtf_node* node, const char* attribute, const int64_t* dims, size_t rank) {
  return guarded([&] { node->def.attributes[attribute] = dtf::api::shapeOf(dims, rank); });
}

dtf_code dtf_node_function(dtf_node* node, const char* attribute, const dtf_graph* body,
                           const dtf_output* parameters, size_t parameters_count,
                           const dtf_output* results, size_t results_count) {
  return guarded([&] {
    try {
      std::vector<dtf::graph::NodeId> takes;
      std::vector<dtf::graph::Output> gives;
      for (size_t i = 0; i < parameters_count; ++i) {
        checkHas(body->graph, parameters[i]);
        takes.push_back({parameters[i].node});
      }
      for (size_t i = 0; i < results_count; ++i) {
        checkHas(body->graph, results[i]);
        gives.push_back(toOutput(results[i]));
      }
      node->def.attributes[attribute] =
          dtf::graph::Function::make(body->graph, std::move(takes), std::move(gives));
    } catch (const dtf::Error& error) {
      const std::string& name = node->def.name;
      throw dtf::Error(error.code(),
                       (name.empty() || name.back() == '/' ? "a node" : "node '" + name + "'") +
                           " (" + node->def.op + "), its attribute '" + attribute +
                           "': " + error.message());
    }
  });
}

dtf_code dtf_node_add(dtf_node* node, int32_t* id) {
  const std::unique_ptr<dtf_node> owner(node);
  return guarded([&] {
    if (node->failure) std::rethrow_exception(node->failure);
    dtf::graph::Graph& graph = node->graph->graph;
    std::string& name = node->def.name;
    if (name.empty() || name.back() == '/') name = graph.uniqueName(name + node->def.op);
    *id = graph.addNode(std::move(node->def)).value;
  });
}

void dtf_node_free(dtf_node* node) {
  delete node;
}

const char* dtf_graph_node_name(const dtf_graph* graph, int32_t id) {
  const auto& nodes = graph->graph.nodes();
  return id >= 0 && std::cmp_less(id, nodes.size()) ? nodes[static_cast<size_t>(id)].name.c_str()
                                                    : nullptr;
}

dtf_code dtf_graph_output(const dtf_graph* graph, dtf_output output, dtf_dtype* dtype,
                          int64_t* dims, size_t room, size_t* rank) {
  return guarded([&] {
    checkHas(graph->graph, output);
    const dtf::graph::TensorSpec& spec = graph->graph.spec(toOutput(output));
    const std::vector<int64_t>& all = spec.shape.dims();
    if (dtype != nullptr) *dtype = static_cast<dtf_dtype>(spec.dtype);
    std::copy_n(all.begin(), std::min(room, all.size()), dims);
    *rank = all.size();
  });
}

dtf_code dtf_graph_gradients(dtf_graph* graph, dtf_output loss, const dtf_output* with_respect_to,
                             size_t count, dtf_output* gradients) {
  return guarded([&] {
    checkHas(graph->graph, loss);
    std::vector<dtf::graph::Output> of;
    for (size_t i = 0; i < count; ++i) {
      checkHas(graph->graph, with_respect_to[i]);
      of.push_back(toOutput(with_respect_to[i]));
    }
    const auto made = dtf::graph::addGradients(graph->graph, toOutput(loss), of);
    DTF_CHECK(made.size() == count);
    for (size_t i = 0; i < count; ++i) gradients[i] = {made[i].node.value, made[i].index};
  });
}

const char* dtf_op_names(void) {
  static const std::string lines = [] {
    std::string all;
    for (const std::string_view name : dtf::graph::standardOps().names())
      if (isForPrograms(name)) all += lineOf(*dtf::graph::standardOps().find(name));
    return all;
  }();
  return lines.c_str();
}
