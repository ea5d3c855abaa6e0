// The gradients of branches and loops. The gradient of an If is an If over the gradients of its
// branches. The gradient of a While is a While over the gradient of its body, through the
// iterations in reverse. Both recompute the function from its arguments and differentiate it:
// intermediate tensors of an iteration are never kept.

#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/graph/autodiff.h"
#include "common/graph/function.h"
#include "common/graph/gradient_functions.h"
#include "common/graph/while_op.h"

namespace dtf::graph {
namespace {

using Request = GradientRequest;
using Specs = std::vector<TensorSpec>;

[[noreturn]] void refuseLoop(const Request& r, const std::string& why) {
  throw Error(ErrorCode::kBadConfig, "node '" + r.node.name + "' (" + r.node.op + "): " + why);
}

bool isFloat(Builder& b, const Output& tensor) {
  return b.graph().spec(tensor).dtype == DType::kFloat32;
}

// Builds a gradient function. Its errors also name `r`'s node, since names within a function are
// its own.
FunctionRef built(Builder& b, const Request& r, const char* function, const Specs& parameters,
                  const Function::Build& build) {
  try {
    return Function::build(b.graph().catalog(), parameters, build);
  } catch (const Error& error) {
    refuseLoop(r, std::string("its gradient through ") + function + ": " + error.message());
  }
}

// Adds the nodes of `function` for `arguments` in place of its Placeholders, and returns its
// results. Nodes keep their names, for messages, unless the names are taken.
std::vector<Output> inlined(Builder& b, const Function& function,
                            std::span<const Output> arguments) {
  const Graph& source = function.graph();
  std::vector<NodeId> copied(source.nodes().size());
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto parameter = static_cast<size_t>(function.parameters()[i].value);
    copied[parameter] = arguments[i].node;
  }
  const auto mapped = [&copied](NodeId node) { return copied[static_cast<size_t>(node.value)]; };
  for (const Node& node : source.nodes()) {
    if (node.op == "Placeholder") continue;
    std::vector<Output> inputs;
    for (const Output& input : node.inputs) inputs.push_back({mapped(input.node), input.index});
    std::vector<NodeId> before;
    for (const NodeId control : node.control_inputs) before.push_back(mapped(control));
    copied[static_cast<size_t>(node.id.value)] =
        b.node(node.op, std::move(inputs), node.attributes, b.graph().uniqueName(node.name),
               std::move(before));
  }
  std::vector<Output> results;
  for (const Output& result : function.results())
    results.push_back({mapped(result.node), result.index});
  return results;
}

// Returns the indices, in this range of outputs, that have a gradient.
std::vector<size_t> given(const Request& r, size_t first, size_t count) {
  std::vector<size_t> indices;
  for (size_t i = first; i < first + count; ++i)
    if (r.output_gradients[i]) indices.push_back(i);
  return indices;
}

std::vector<size_t> wantedFloats(Builder& b, const Request& r, size_t first, size_t end) {
  std::vector<size_t> indices;
  for (size_t i = first; i < end; ++i)
    if (r.wanted[i] && isFloat(b, in(r, i))) indices.push_back(i);
  return indices;
}

Output orZeros(Builder& b, const std::optional<Output>& gradient, const TensorSpec& of) {
  return gradient ? *gradient : b.constant(of.shape, 0);
}

template <class T>
void append(std::vector<T>& to, std::span<const T> more) {
  to.insert(to.end(), more.begin(), more.end());
}

// Builds the gradient of the branch `name`: from the arguments and the gradients of the results
// `ys` to the gradients of the arguments `xs`.
FunctionRef branchGradient(Builder& caller, const Request& r, const char* name,
                           std::span<const size_t> ys, std::span<const size_t> xs) {
  const Function& branch = *r.node.attribute<FunctionRef>(name);
  Specs parameters = branch.parameterSpecs();
  const size_t arguments = parameters.size();
  const Specs results = branch.resultSpecs();
  for (const size_t y : ys) parameters.push_back(results[y]);
  return built(caller, r, name, parameters, [&](Builder& b, std::span<const Output> all) {
    const std::vector<Output> made = inlined(b, branch, all.first(arguments));
    std::vector<Output> of, with_respect_to;
    for (const size_t y : ys) of.push_back(made[y]);
    for (const size_t x : xs) with_respect_to.push_back(all[x]);
    const auto found =
        addVectorJacobianProduct(b.graph(), of, all.subspan(arguments), with_respect_to);
    std::vector<Output> gradients;
    for (size_t i = 0; i < xs.size(); ++i)
      gradients.push_back(orZeros(b, found[i], parameters[xs[i]]));
    return gradients;
  });
}

Gradients ifGradient(Builder& b, const Request& r) {
  Gradients gradients(r.node.inputs.size());
  const std::vector<size_t> ys = given(r, 0, r.node.outputs.size());
  const std::vector<size_t> wanted = wantedFloats(b, r, 1, r.node.inputs.size());
  if (wanted.empty()) return gradients;
  std::vector<size_t> xs;  // indices of the branches' arguments, which exclude the condition
  for (const size_t input : wanted) xs.push_back(input - 1);
  std::vector<Output> inputs = r.node.inputs;
  for (const size_t y : ys) inputs.push_back(*r.output_gradients[y]);
  const auto branch = [&](const char* name) { return branchGradient(b, r, name, ys, xs); };
  const NodeId made =
      b.node("If", std::move(inputs),
             {{"then_branch", branch("then_branch")}, {"else_branch", branch("else_branch")}});
  for (size_t i = 0; i < wanted.size(); ++i)
    gradients[wanted[i]] = Output{made, static_cast<int32_t>(i)};
  return gradients;
}

// The gradient of one While.
// Borrows: all constructor arguments.
class WhileGradient {
 public:
  WhileGradient(Builder& b, const Request& r)
      : b_(b),
        r_(r),
        op_(WhileOp::of(r.node.attributes, r.node.inputs.size())),
        body_(*r.node.attribute<FunctionRef>("body")) {
    if (!given(r, op_.iterations(), 1).empty())
      refuseLoop(r, "its number of iterations has no gradient");
    if (op_.keep_carried && !given(r, op_.firstKept(), op_.carried).empty())
      refuseLoop(r, "the kept states of a loop serve its own gradient and have none");
    for (size_t i = 0; i < op_.carried; ++i)
      if (isFloat(b, in(r, op_.firstCarried() + i))) carried_.push_back(i);
    stacked_ = given(r, op_.firstStacked(), op_.stacked);
    summed_ = given(r, op_.firstSummed(), op_.summed);
    sequences_ = wantedFloats(b, r, op_.firstSequence(), op_.firstCaptured());
    captured_ = wantedFloats(b, r, op_.firstCaptured(), r.node.inputs.size());
  }

  Gradients build() {
    Gradients gradients(r_.node.inputs.size());
    if (!op_.keep_carried && op_.counted)
      refuseLoop(r_,
                 "it is counted and keeps no state, as the gradient of a loop is: there are no "
                 "second derivatives through a loop");
    if (!op_.keep_carried)
      refuseLoop(r_, "its gradient needs the state before each iteration: set keep_carried");
    const NodeId made = addLoop();
    int32_t next = 0;
    for (const size_t i : carried_) gradients[op_.firstCarried() + i] = Output{made, next++};
    ++next;  // skips the number of iterations
    for (const size_t i : sequences_) gradients[i] = Output{made, next++};
    for (const size_t i : captured_) gradients[i] = Output{made, next++};
    return gradients;
  }

 private:
  Output output(size_t index) const { return {r_.node.id, static_cast<int32_t>(index)}; }

  NodeId addLoop() {
    std::vector<Output> inputs = {output(op_.iterations())};
    for (const size_t i : carried_)
      inputs.push_back(orZeros(b_, r_.output_gradients[i], r_.node.outputs[i]));
    const size_t before_sequences = inputs.size();
    for (size_t i = 0; i < op_.carried; ++i) inputs.push_back(output(op_.firstKept() + i));
    for (size_t i = op_.firstSequence(); i < op_.firstCaptured(); ++i) inputs.push_back(in(r_, i));
    for (const size_t i : stacked_) inputs.push_back(*r_.output_gradients[i]);
    const size_t sequences = inputs.size() - before_sequences;
    for (size_t i = op_.firstCaptured(); i < r_.node.inputs.size(); ++i)
      inputs.push_back(in(r_, i));
    for (const size_t i : summed_) inputs.push_back(*r_.output_gradients[i]);
    return b_.node("While", std::move(inputs),
                   {{"body", bodyGradient()},
                    {"max_iterations", op_.max_iterations},
                    {"carried", static_cast<int64_t>(carried_.size())},
                    {"sequences", static_cast<int64_t>(sequences)},
                    {"stacked", static_cast<int64_t>(sequences_.size())},
                    {"summed", static_cast<int64_t>(captured_.size())},
                    {"counted", true},
                    // Runs backwards over the forward order.
                    {"reverse", !op_.reverse}});
  }

  // Builds the body's gradient: from d(carried), the body's arguments without the captured ones,
  // d(stacked), the captured arguments and d(summed), to the gradients of carried, sequences and
  // captured.
  FunctionRef bodyGradient() const {
    const Specs arguments = body_.parameterSpecs(), results = body_.resultSpecs();
    const size_t sliced = op_.carried + op_.sequences;
    Specs parameters;
    for (const size_t i : carried_) parameters.push_back(results[i]);
    append<TensorSpec>(parameters, std::span(arguments).first(sliced));
    for (const size_t i : stacked_) parameters.push_back(results[resultOf(i)]);
    append<TensorSpec>(parameters, std::span(arguments).subspan(sliced));
    for (const size_t i : summed_) parameters.push_back(results[resultOf(i)]);
    return built(b_, r_, "the body", parameters, [this](Builder& b, std::span<const Output> all) {
      return differentiated(b, all);
    });
  }

  // Returns the index of the body's result that becomes this output.
  size_t resultOf(size_t output) const { return output - 1; }

  std::vector<Output> differentiated(Builder& b, std::span<const Output> all) const {
    const auto take = [&all](size_t count) {
      const auto taken = all.first(count);
      all = all.subspan(count);
      return taken;
    };
    std::vector<Output> dys, arguments, ys, xs;
    append(dys, take(carried_.size()));
    append(arguments, take(op_.carried + op_.sequences));
    append(dys, take(stacked_.size()));
    append(arguments, take(op_.captured()));
    append(dys, take(summed_.size()));
    const std::vector<Output> results = inlined(b, body_, arguments);
    for (const size_t i : carried_) ys.push_back(results[i]);
    for (const size_t i : stacked_) ys.push_back(results[resultOf(i)]);
    for (const size_t i : summed_) ys.push_back(results[resultOf(i)]);
    for (const size_t i : carried_) xs.push_back(arguments[i]);
    for (const size_t i : sequences_) xs.push_back(arguments[i - op_.firstCarried()]);
    for (const size_t i : captured_) xs.push_back(arguments[i - op_.firstCarried()]);
    const auto found = addVectorJacobianProduct(b.graph(), ys, dys, xs);
    std::vector<Output> gradients;
    for (size_t i = 0; i < xs.size(); ++i)
      gradients.push_back(orZeros(b, found[i], b.graph().spec(xs[i])));
    return gradients;
  }

  Builder& b_;
  const Request& r_;
  const WhileOp op_;
  const Function& body_;
  std::vector<size_t> carried_;               // carried tensors with a gradient
  std::vector<size_t> stacked_, summed_;      // outputs with a given gradient
  std::vector<size_t> sequences_, captured_;  // inputs with a wanted gradient
};

Gradients whileGradient(Builder& b, const Request& r) {
  return WhileGradient(b, r).build();
}

}  // namespace

void addControlGradients(GradientTable& table) {
  table.add("If", ifGradient);
  table.add("While", whileGradient);
}

}  // namespace dtf::graph
