#pragma once

// The variables of a Graph: how they are made, read, changed and trained.

#include <string>
#include <utility>
#include <vector>

#include "optimizers.h"
#include "tensor.h"

namespace dtf {
inline namespace v1 {

using Output = dtf_output;

// Arguments of Graph::minimize() besides the optimizer.
struct MinimizeOptions {
  std::vector<Output> variables = {};  // to train; none: all that the loss depends on
  Setting clip_by_global_norm = {};    // of all gradients, where the loss is computed
  Setting clip_by_value = {};          // on the variables' tasks
  Setting moving_average_decay = {};   // of averages of the variables: "w/ExponentialMovingAverage"
  std::string global_step = "global_step";  // the name of the counter of steps
};
struct Minimized {
  Output train;        // runs a step; its value, int64, is the global step after it
  Output global_step;  // the counter, a variable
  Output norm;         // with clip_by_global_norm, the norm before; else node -1
};

// The part of a Graph that is about variables. `G` is Graph, which has op().
// Errors: as Graph.
template <class G>
class VariableOps {
 public:
  // `initializer`: "zeros", "ones", "constant=0.1", "random_uniform=0.1", "random_normal=0.1",
  // "truncated_normal=0.1", "glorot_uniform", "he_normal" and so on; see Session::initialize().
  Output variable(const std::string& name, Dims dims, const std::string& initializer = "zeros") {
    return graph().op("Variable", {}, {{"shape", std::move(dims)}, {"initializer", initializer}},
                      name);
  }
  // An int64 scalar, which read(), assign(), assignAdd() and assignSub() take.
  Output counter(const std::string& name) {
    return graph().op(
        "Variable", {},
        {{"shape", Dims{}}, {"dtype", DTF_INT64}, {"initializer", std::string("zeros")}}, name);
  }

  // ---- changes on the variable's task: each change is atomic, none is lost
  // Each returns the variable's value after it.
  Output read(Output variable) { return graph().op("ReadVariable", {variable}); }
  Output assign(Output variable, Output value) { return graph().op("Assign", {variable, value}); }
  Output assignAdd(Output variable, Output by) { return graph().op("AssignAdd", {variable, by}); }
  Output assignSub(Output variable, Output by) { return graph().op("AssignSub", {variable, by}); }

  // Returns d(loss) / d(x) for each x, in order.
  std::vector<Output> gradients(Output loss, const std::vector<Output>& with_respect_to) {
    std::vector<Output> made(with_respect_to.size());
    check(
        dtf_graph_gradients(graph().get(), loss, with_respect_to.data(), made.size(), made.data()));
    return made;
  }

  // Adds one step of an optimizer that makes the loss smaller; see dtf_graph_minimize().
  //   minimize(loss, Adam{.learning_rate = 0.01}, {.clip_by_global_norm = 5})
  Minimized minimize(Output loss, Optimizer optimizer, const MinimizeOptions& options = {}) {
    optimizer.set("clip_by_global_norm", options.clip_by_global_norm)
        .set("clip_by_value", options.clip_by_value)
        .set("moving_average.decay", options.moving_average_decay);
    dtf_minimize_options how{};
    how.size = sizeof(how);
    how.variables = options.variables.data();
    how.variables_count = options.variables.size();
    how.prefix = graph().prefix().c_str();
    how.global_step = options.global_step.c_str();
    Minimized made;
    check(dtf_graph_minimize(graph().get(), loss, optimizer.text().c_str(), &how, &made.train,
                             &made.global_step, &made.norm));
    return made;
  }

 private:
  G& graph() { return static_cast<G&>(*this); }
};

}  // namespace v1
}  // namespace dtf
