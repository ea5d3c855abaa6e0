#pragma once

// Graphs of operations, run by a Session.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "variables.h"

namespace dtf {
inline namespace v1 {

class Graph;

// A function called by an If or a While: a pure graph from its Placeholders to results.
// Borrows the graph until the op has been added, which copies it.
struct Function {
  const Graph* graph = nullptr;
  std::vector<Output> parameters, results;
};

struct Attribute {
  std::string name;
  std::variant<bool, int64_t, double, std::string, dtf_dtype, Dims, Function> value;
};

// Chooses the device of a new node from its op and attributes; see <dtf/device_setter.h>.
using DeviceFunction =
    std::function<std::string(const std::string& op, const std::vector<Attribute>& attributes)>;

// The device of new nodes: a name, "/job:ps/task:1", or a function.
class DeviceChoice {
 public:
  DeviceChoice() = default;
  DeviceChoice(std::string name) : name_(std::move(name)) {}  // NOLINT: a name is a choice
  DeviceChoice(const char* name) : name_(name) {}             // NOLINT: as above
  template <class Choose, class = std::enable_if_t<std::is_invocable_v<
                              Choose, const std::string&, const std::vector<Attribute>&>>>
  DeviceChoice(Choose choose) : choose_(std::move(choose)) {}  // NOLINT: as above

  // Returns "" for an op that acts on a variable or a queue, where that is, if a function chooses.
  std::string of(const std::string& op, const std::vector<Attribute>& attributes) const {
    if (!choose_) return name_;
    for (const char* act : {"ReadVariable", "Assign", "Scatter", "Apply", "IsVariable", "Queue"})
      if (op.rfind(act, 0) == 0) return {};
    return choose_(op, attributes);
  }
  const std::string& name() const { return name_; }  // empty: any device, or a function's

 private:
  std::string name_;
  DeviceFunction choose_;
};

// One component of a queue's elements.
struct Component {
  dtf_dtype dtype;
  Dims dims;
};

// Arguments of Graph::whileLoop().
struct Loop {
  std::vector<Output> carried, sequences, captured;
  Function body;  // carried, a slice of each sequence, captured -> carried, stacked, summed
  // carried, captured -> a scalar: the loop goes on while it is not 0. Without a graph: always
  Function cond;
  int64_t max_iterations = 0;       // required: the number of iterations, with cond the largest
  int64_t stacked = 0, summed = 0;  // counts among the body's results
  bool keep_carried = false;  // for gradients through the loop; such a gradient has none itself
};
struct LoopResults {
  std::vector<Output> carried;
  Output iterations;  // int64: the iterations run
  std::vector<Output> stacked, summed;
};

// Owns the nodes. One thread at a time.
// Errors: DTF_BAD_CONFIG with the node's name for an op, an attribute or a shape that doesn't fit,
// and for a name that is taken.
class Graph : public VariableOps<Graph> {
 public:
  Graph() {
    dtf_graph* made = nullptr;
    check(dtf_graph_new(&made));
    handle_.reset(made);
  }

  Graph(const Graph&) = delete;  // a Scope holds its address
  Graph& operator=(const Graph&) = delete;

  // ---- devices and name prefixes of new nodes, until the scope ends
  template <class T>
  class [[nodiscard]] Scope {
   public:
    ~Scope() { *field_ = std::move(before_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    friend class Graph;
    Scope(T& field, T value) : field_(&field), before_(std::exchange(field, std::move(value))) {}
    T* field_;
    T before_;
  };
  // "/job:ps/task:1", or a function; an inner scope's device replaces an outer one's.
  Scope<DeviceChoice> device(DeviceChoice choice) { return {device_, std::move(choice)}; }
  Scope<std::string> scope(const std::string& name) { return {prefix_, prefix_ + name + "/"}; }

  // ---- any op; dtf_op_names() lists them with their attributes
  Output op(const std::string& op, const std::vector<Output>& inputs,
            const std::vector<Attribute>& attributes = {}, const std::string& name = {},
            const std::vector<Output>& after = {}) {
    dtf_node* node = nullptr;
    check(dtf_node_new(get(), op.c_str(), (prefix_ + name).c_str(), &node));
    std::unique_ptr<dtf_node, FreeNode> owner(node);
    for (const Output& input : inputs) dtf_node_input(node, input);
    for (const Output& before : after) dtf_node_control_input(node, before.node);
    const std::string where = device_.of(op, attributes);
    if (!where.empty()) dtf_node_device(node, where.c_str());
    for (const Attribute& attribute : attributes) set(node, attribute);
    int32_t id = -1;
    check(dtf_node_add(owner.release(), &id));
    return {id, 0};
  }

  // ---- common ops
  Output placeholder(const std::string& name, dtf_dtype dtype, Dims dims) {
    return op("Placeholder", {}, {{"dtype", dtype}, {"shape", std::move(dims)}}, name);
  }
  Output constant(Dims dims, double value, dtf_dtype dtype = DTF_FLOAT32) {
    return op("Const", {}, {{"dtype", dtype}, {"shape", std::move(dims)}, {"value", value}});
  }
  Output add(Output a, Output b) { return op("Add", {a, b}); }
  Output sub(Output a, Output b) { return op("Sub", {a, b}); }
  Output mul(Output a, Output b) { return op("Mul", {a, b}); }
  Output div(Output a, Output b) { return op("Div", {a, b}); }
  Output exp(Output x) { return op("Exp", {x}); }
  Output log(Output x) { return op("Log", {x}); }
  Output pow(Output a, Output b) { return op("Pow", {a, b}); }
  Output scale(Output x, double factor) { return op("Scale", {x}, {{"factor", factor}}); }
  // Over all dimensions, or over `axes`.
  Output mean(Output x, Dims axes = {}, bool keep_dims = false) {
    return op("Mean", {x}, {{"axes", std::move(axes)}, {"keep_dims", keep_dims}});
  }
  Output sum(Output x, Dims axes = {}, bool keep_dims = false) {
    return op("Sum", {x}, {{"axes", std::move(axes)}, {"keep_dims", keep_dims}});
  }
  Output max(Output x, Dims axes = {}, bool keep_dims = false) {
    return op("Max", {x}, {{"axes", std::move(axes)}, {"keep_dims", keep_dims}});
  }
  Output min(Output x, Dims axes = {}, bool keep_dims = false) {
    return op("Min", {x}, {{"axes", std::move(axes)}, {"keep_dims", keep_dims}});
  }
  Output argMax(Output x, int64_t axis) { return op("ArgMax", {x}, {{"axis", axis}}); }
  Output cast(Output x, dtf_dtype dtype) { return op("Cast", {x}, {{"dtype", dtype}}); }
  Output matMul(Output a, Output b, bool transpose_a = false, bool transpose_b = false) {
    return op("MatMul", {a, b}, {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
  }
  Output biasAdd(Output x, Output bias) { return op("BiasAdd", {x, bias}); }
  Output relu(Output x) { return op("Relu", {x}); }

  // ---- random numbers: determined by `seed`, two int64, and `stream`
  Output randomUniform(Output seed, Dims dims, int64_t stream = 0) {
    return op("StatelessRandomUniform", {seed}, {{"shape", std::move(dims)}, {"stream", stream}});
  }
  Output randomNormal(Output seed, Dims dims, int64_t stream = 0) {
    return op("StatelessRandomNormal", {seed}, {{"shape", std::move(dims)}, {"stream", stream}});
  }

  // ---- queues on a task: first in, first out. An operation waits for room or for elements as long
  // as the step may take. It delays only later operations on the queue, and steps of its session
  // with the same feeds and fetches. On a closed queue it fails with DTF_OUT_OF_RANGE. An element
  // has at most 64 components.
  Output fifoQueue(const std::string& name, const std::vector<Component>& components,
                   int64_t capacity) {
    std::string types, shapes;
    for (const Component& each : components) {
      types += (types.empty() ? "" : ", ") + typeName(each.dtype);
      std::string dims;
      for (const int64_t dim : each.dims) dims += (dims.empty() ? "" : ", ") + std::to_string(dim);
      shapes += (shapes.empty() ? "[" : ", [") + dims + "]";
    }
    return op("FIFOQueue", {},
              {{"component_types", types}, {"shapes", shapes}, {"capacity", capacity}}, name);
  }
  // Takes a tensor for each component.
  Output enqueue(Output queue, const std::vector<Output>& element) {
    return enqueueAs("QueueEnqueue", queue, element);
  }
  // Enqueues n elements: [n, ..] for each component. They enter as there is room.
  Output enqueueMany(Output queue, const std::vector<Output>& elements) {
    return enqueueAs("QueueEnqueueMany", queue, elements);
  }
  std::vector<Output> dequeue(Output queue) { return allOutputsOf(op("QueueDequeue", {queue})); }
  // Dequeues n elements at once, [n, ..] for each component.
  std::vector<Output> dequeueMany(Output queue, int64_t n) {
    return allOutputsOf(op("QueueDequeueMany", {queue}, {{"n", n}}));
  }
  Output queueSize(Output queue) { return op("QueueSize", {queue}); }
  // Rejects new elements. Operations that already wait still enter, unless they are cancelled.
  Output closeQueue(Output queue, bool cancel_pending_enqueues = false) {
    return op("QueueClose", {queue}, {{"cancel_pending_enqueues", cancel_pending_enqueues}});
  }

  // ---- branches and loops: TensorFlow's cond and while_loop
  // Returns the results of `then_branch` if the scalar is not 0, else the results of `else_branch`.
  std::vector<Output> cond(Output condition, const std::vector<Output>& arguments,
                           const Function& then_branch, const Function& else_branch) {
    std::vector<Output> inputs = {condition};
    inputs.insert(inputs.end(), arguments.begin(), arguments.end());
    const Output made =
        op("If", inputs, {{"then_branch", then_branch}, {"else_branch", else_branch}});
    return outputsOf(made, 0, then_branch.results.size());
  }
  LoopResults whileLoop(const Loop& loop) {
    std::vector<Output> inputs = loop.carried;
    for (const std::vector<Output>* more : {&loop.sequences, &loop.captured})
      inputs.insert(inputs.end(), more->begin(), more->end());
    std::vector<Attribute> attributes = {{"body", loop.body},
                                         {"max_iterations", loop.max_iterations},
                                         {"carried", static_cast<int64_t>(loop.carried.size())},
                                         {"sequences", static_cast<int64_t>(loop.sequences.size())},
                                         {"stacked", loop.stacked},
                                         {"summed", loop.summed},
                                         {"keep_carried", loop.keep_carried}};
    if (loop.cond.graph != nullptr) attributes.push_back({"cond", loop.cond});
    const Output made = op("While", inputs, attributes);
    const size_t carried = loop.carried.size();
    const auto stacked = static_cast<size_t>(loop.stacked);
    return {outputsOf(made, 0, carried),
            {made.node, static_cast<int32_t>(carried)},
            outputsOf(made, carried + 1, stacked),
            outputsOf(made, carried + 1 + stacked, static_cast<size_t>(loop.summed))};
  }
  // uint8: 1 for true.
  Output less(Output a, Output b) { return op("Less", {a, b}); }
  Output equal(Output a, Output b) { return op("Equal", {a, b}); }

  // Returns the name that a session uses: "layer/Relu:0".
  std::string name(Output output) const {
    const char* const node = dtf_graph_node_name(get(), output.node);
    if (node == nullptr) throw Error(DTF_BAD_CONFIG, "an output of another graph");
    return node + (":" + std::to_string(output.index));
  }
  Dims dims(Output output) const {
    size_t rank = 0;
    check(dtf_graph_output(get(), output, nullptr, nullptr, 0, &rank));
    Dims dims(rank);
    check(dtf_graph_output(get(), output, nullptr, dims.data(), rank, &rank));
    return dims;
  }

  const dtf_graph* get() const { return handle_.get(); }
  dtf_graph* get() { return handle_.get(); }
  const std::string& device() const { return device_.name(); }
  const std::string& prefix() const { return prefix_; }

 private:
  struct Free {
    void operator()(dtf_graph* graph) const { dtf_graph_free(graph); }
  };
  struct FreeNode {
    void operator()(dtf_node* node) const { dtf_node_free(node); }
  };

  static std::vector<Output> outputsOf(Output made, size_t first, size_t count) {
    std::vector<Output> outputs;
    for (size_t i = first; i < first + count; ++i)
      outputs.push_back({made.node, static_cast<int32_t>(i)});
    return outputs;
  }

  std::vector<Output> allOutputsOf(Output made) const {
    size_t count = 0, rank = 0;
    while (dtf_graph_output(get(), {made.node, static_cast<int32_t>(count)}, nullptr, nullptr, 0,
                            &rank) == DTF_OK)
      ++count;
    return outputsOf(made, 0, count);
  }
  Output enqueueAs(const char* how, Output queue, const std::vector<Output>& values) {
    std::vector<Output> inputs = {queue};
    inputs.insert(inputs.end(), values.begin(), values.end());
    return op(how, inputs);
  }
  static std::string typeName(dtf_dtype dtype) {
    switch (dtype) {
      case DTF_FLOAT32:
        return "float32";
      case DTF_UINT8:
        return "uint8";
      case DTF_INT32:
        return "int32";
      case DTF_INT64:
        return "int64";
    }
    return "no type";
  }

  static void set(dtf_node* node, const Attribute& attribute) {
    const char* const name = attribute.name.c_str();
    struct Setter {
      dtf_node* node;
      const char* name;
      void operator()(bool value) const { dtf_node_bool(node, name, value ? 1 : 0); }
      void operator()(int64_t value) const { dtf_node_int(node, name, value); }
      void operator()(double value) const { dtf_node_double(node, name, value); }
      void operator()(const std::string& value) const { dtf_node_text(node, name, value.c_str()); }
      void operator()(dtf_dtype value) const { check(dtf_node_dtype(node, name, value)); }
      void operator()(const Dims& value) const {
        check(dtf_node_shape(node, name, value.data(), value.size()));
      }
      void operator()(const Function& value) const {
        if (value.graph == nullptr) throw Error(DTF_BAD_CONFIG, "a function without a graph");
        check(dtf_node_function(node, name, value.graph->get(), value.parameters.data(),
                                value.parameters.size(), value.results.data(),
                                value.results.size()));
      }
    };
    std::visit(Setter{node, name}, attribute.value);
  }

  std::unique_ptr<dtf_graph, Free> handle_;
  DeviceChoice device_;
  std::string prefix_;
};

}  // namespace v1
}  // namespace dtf
