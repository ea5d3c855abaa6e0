#pragma once

// Graphs of operations, to be run by a Session.

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tensor.h"

namespace dtf {
inline namespace v1 {

using Output = dtf_output;

struct Attribute {
  std::string name;
  std::variant<bool, int64_t, double, std::string, dtf_dtype, Dims> value;
};

// Owns the nodes. One thread at a time.
// Errors: DTF_BAD_CONFIG, naming the node, for an op, an attribute or a shape that doesn't fit, and
// for a name that is taken.
class Graph {
 public:
  Graph() {
    dtf_graph* made = nullptr;
    check(dtf_graph_new(&made));
    handle_.reset(made);
  }

  Graph(const Graph&) = delete;  // a Scope knows where it is
  Graph& operator=(const Graph&) = delete;

  // ---- where nodes run, and what is in front of their names, until the scope ends
  class [[nodiscard]] Scope {
   public:
    ~Scope() { *field_ = std::move(before_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    friend class Graph;
    Scope(std::string& field, std::string value)
        : field_(&field), before_(std::exchange(field, std::move(value))) {}
    std::string* field_;
    std::string before_;
  };
  Scope device(std::string name) { return {device_, std::move(name)}; }  // "/job:ps/task:1"
  Scope scope(const std::string& name) { return {prefix_, prefix_ + name + "/"}; }

  // ---- any op: dtf_op_names() has them, with their attributes
  Output op(const std::string& op, const std::vector<Output>& inputs,
            const std::vector<Attribute>& attributes = {}, const std::string& name = {},
            const std::vector<Output>& after = {}) {
    dtf_node* node = nullptr;
    check(dtf_node_new(get(), op.c_str(), (prefix_ + name).c_str(), &node));
    std::unique_ptr<dtf_node, FreeNode> owner(node);
    for (const Output& input : inputs) dtf_node_input(node, input);
    for (const Output& before : after) dtf_node_control_input(node, before.node);
    if (!device_.empty()) dtf_node_device(node, device_.c_str());
    for (const Attribute& attribute : attributes) set(node, attribute);
    int32_t id = -1;
    check(dtf_node_add(owner.release(), &id));
    return {id, 0};
  }

  // ---- those that nearly every graph has
  Output placeholder(const std::string& name, dtf_dtype dtype, Dims dims) {
    return op("Placeholder", {}, {{"dtype", dtype}, {"shape", std::move(dims)}}, name);
  }
  Output variable(const std::string& name, Dims dims) {
    return op("Variable", {}, {{"shape", std::move(dims)}, {"initializer", std::string("zeros")}},
              name);
  }
  Output constant(Dims dims, double value, dtf_dtype dtype = DTF_FLOAT32) {
    return op("Const", {}, {{"dtype", dtype}, {"shape", std::move(dims)}, {"value", value}});
  }
  Output add(Output a, Output b) { return op("Add", {a, b}); }
  Output sub(Output a, Output b) { return op("Sub", {a, b}); }
  Output mul(Output a, Output b) { return op("Mul", {a, b}); }
  Output scale(Output x, double factor) { return op("Scale", {x}, {{"factor", factor}}); }
  Output mean(Output x) { return op("Mean", {x}); }
  Output matMul(Output a, Output b, bool transpose_a = false, bool transpose_b = false) {
    return op("MatMul", {a, b}, {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
  }
  Output biasAdd(Output x, Output bias) { return op("BiasAdd", {x, bias}); }
  Output relu(Output x) { return op("Relu", {x}); }

  // ---- variables, changed on the task that has them: each change is whole, none is lost
  // Each gives the value that the variable has then.
  Output read(Output variable) { return op("ReadVariable", {variable}); }
  Output assign(Output variable, Output value) { return op("Assign", {variable, value}); }
  Output assignAdd(Output variable, Output by) { return op("AssignAdd", {variable, by}); }
  Output assignSub(Output variable, Output by) { return op("AssignSub", {variable, by}); }

  // d(loss) / d(each of them), in their order.
  std::vector<Output> gradients(Output loss, const std::vector<Output>& with_respect_to) {
    std::vector<Output> made(with_respect_to.size());
    check(dtf_graph_gradients(get(), loss, with_respect_to.data(), made.size(), made.data()));
    return made;
  }

  // As a session takes it: "layer/Relu:0".
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
  const std::string& device() const { return device_; }
  const std::string& prefix() const { return prefix_; }

 private:
  struct Free {
    void operator()(dtf_graph* graph) const { dtf_graph_free(graph); }
  };
  struct FreeNode {
    void operator()(dtf_node* node) const { dtf_node_free(node); }
  };

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
    };
    std::visit(Setter{node, name}, attribute.value);
  }

  std::unique_ptr<dtf_graph, Free> handle_;
  std::string device_, prefix_;
};

}  // namespace v1
}  // namespace dtf
