#pragma once

// A convenient way to build graphs: one function per op, generated names under a scope, devices
// merged from scopes. It adds nothing that Graph::addNode cannot do.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/graph/device_name.h"
#include "common/graph/graph.h"
#include "common/graph/window.h"

namespace dtf::graph {

// Owns: the current name scope and device scope.
// Borrows: `graph`, which must outlive it.
// Threads: thread-compatible.
// Blocks: never.
// Errors: as Graph::addNode. Placeholders and variables get exactly the given name under the scope,
// which must be free; other nodes are named after their op, with a number if needed.
class Builder {
 public:
  // Restores the builder's former name scope and device at its end. Scopes end in reverse order.
  class [[nodiscard]] Scope {
   public:
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    friend class Builder;
    Scope(Builder& builder, std::string_view name, const DeviceName& device);
    Builder& builder_;
    std::string name_scope_before_;
    DeviceName device_before_;
  };

  explicit Builder(Graph& graph) : graph_(graph) {}
  Graph& graph() { return graph_; }

  Scope nameScope(std::string_view name);  // "dense" inside "tower": nodes are "tower/dense/..."
  Scope deviceScope(
      std::string_view device);  // merged into the outer scopes; innermost wins per field

  // Returns the prefix of new names: "tower/dense/", or empty.
  const std::string& namePrefix() const { return name_scope_; }

  // ---- inputs and variables
  Output placeholder(std::string_view name, DType dtype, Shape shape);
  Output variable(std::string_view name, Shape shape, std::string initializer = "glorot_uniform");
  Output constant(Shape shape, double value, DType dtype = DType::kFloat32);

  // ---- arithmetic (standard_math_ops.cc)
  Output reshape(Output x, Shape shape);
  Output normalise(Output x, double scale);
  Output add(Output a, Output b);
  Output sub(Output a, Output b);
  Output mul(Output a, Output b);
  Output div(Output a, Output b);
  Output maximum(Output a, Output b);
  Output minimum(Output a, Output b);
  Output squaredDifference(Output a, Output b);
  Output pow(Output a, Output b);
  Output exp(Output x);
  Output log(Output x);
  Output sqrt(Output x);
  Output rsqrt(Output x);
  Output cast(Output x, DType dtype);
  Output abs(Output x);
  Output absGrad(Output dy, Output x);
  Output scale(Output x, double factor);
  Output addN(std::vector<Output> terms);
  Output matMul(Output a, Output b, bool transpose_a = false, bool transpose_b = false);
  Output biasAdd(Output x, Output bias);
  Output biasAddGrad(Output dy);
  Output mean(Output x);
  Output mean(Output x, Shape axes, bool keep_dims = false);
  Output sum(Output x, Shape axes = {}, bool keep_dims = false);
  Output max(Output x, Shape axes = {}, bool keep_dims = false);
  Output min(Output x, Shape axes = {}, bool keep_dims = false);
  Output argMax(Output x, int64_t axis);
  Output broadcastTo(Output x, Shape shape);
  Output meanGrad(Output dy, Shape shape);
  Output mulRows(Output dy, Output x);

  // ---- neural networks (standard_nn_ops.cc)
  Output relu(Output x);
  Output reluGrad(Output dy, Output y);
  Output sigmoid(Output x);
  Output sigmoidGrad(Output dy, Output y);
  Output tanh(Output x);
  Output tanhGrad(Output dy, Output y);
  Output relu6(Output x);
  Output relu6Grad(Output dy, Output y);
  Output leakyRelu(Output x, double alpha);
  Output leakyReluGrad(Output dy, Output x, double alpha);
  Output elu(Output x);
  Output eluGrad(Output dy, Output y);
  Output gelu(Output x, bool approximate = false);
  Output geluGrad(Output dy, Output x, bool approximate);
  Output silu(Output x);
  Output siluGrad(Output dy, Output x);
  Output softplus(Output x);
  Output softplusGrad(Output dy, Output x);
  Output softmax(Output logits);
  Output softmaxGrad(Output dy, Output y);
  struct CrossEntropy {
    Output loss;
    Output backprop;
  };
  CrossEntropy sparseSoftmaxCrossEntropy(Output logits, Output labels);
  CrossEntropy softmaxCrossEntropy(Output logits, Output targets);  // a row of targets for each row
  Output sigmoidCrossEntropy(Output logits, Output targets);
  Output sigmoidCrossEntropyGrad(Output dy, Output logits, Output targets);
  Output huber(Output difference, double delta);
  Output huberGrad(Output dy, Output difference, double delta);
  Output oneHot(Output labels, int64_t depth);
  Output dropout(Output x, Output key, double rate, int64_t layer);
  Output accuracy(Output logits, Output labels);

  // ---- images (standard_image_ops.cc)
  // The filter sets the size of the window; the sizes in `window` are ignored.
  Output conv2D(Output x, Output filter, const Window& window = {}, int64_t groups = 1);
  Output conv2DBackpropInput(Shape x, Output filter, Output dy, const Window& window,
                             int64_t groups);
  Output conv2DBackpropFilter(Output x, Shape filter, Output dy, const Window& window,
                              int64_t groups);
  struct MaxPool {
    Output y;
    Output argmax;
  };
  MaxPool maxPool(Output x, const Window& window);
  Output maxPoolGrad(Output dy, Output argmax, Shape x, const Window& window);
  Output avgPool(Output x, const Window& window);
  Output avgPoolGrad(Output dy, Shape x, const Window& window);
  // The mean of each image and channel: x [B,H,W,C] -> [B,C].
  Output globalAvgPool(Output x);

  // Applies a filter [height, width, channels, multiplier] to each channel alone, as TensorFlow's
  // DepthwiseConv2dNative: output channel c * multiplier + m comes from input channel c. It is a
  // conv2D() with a group for each channel.
  Output depthwiseConv2D(Output x, Output filter, const Window& window = {});

  // ---- normalisation (standard_norm_ops.cc)
  struct BatchNorm {
    Output y, mean, variance, inverse;
  };
  BatchNorm batchNorm(Output x, Output scale, Output offset, double epsilon);
  Output batchNormInference(Output x, Output scale, Output offset, Output mean, Output variance,
                            double epsilon);
  struct LayerNorm {
    Output y, mean, inverse;
  };
  LayerNorm layerNorm(Output x, Output scale, Output offset, double epsilon);
  struct NormGrad {
    Output dx, dscale, doffset;
  };
  NormGrad batchNormGrad(Output dy, Output x, Output scale, Output mean, Output inverse,
                         double epsilon);
  NormGrad layerNormGrad(Output dy, Output x, Output scale, Output mean, Output inverse,
                         double epsilon);

  // ---- parts of tensors, rows of tables (standard_array_ops.cc)
  Output concat(std::vector<Output> parts, int64_t axis);
  Output slice(Output x, Shape begin, Shape size);
  Output pad(Output x, Shape before, Shape after);
  Output gather(Output table, Output indices);
  Output unsortedSegmentSum(Output dy, Output indices, Shape table);
  Output transpose(Output x, Shape permutation);

  // ---- comparisons: uint8, 1 for true (standard_math_ops.cc)
  Output less(Output a, Output b);
  Output lessEqual(Output a, Output b);
  Output equal(Output a, Output b);

  // ---- branches and loops over functions (standard_control_ops.cc)
  // Returns the results of `then_branch` if the scalar `condition` is not 0, else the results of
  // `else_branch`.
  std::vector<Output> cond(Output condition, std::vector<Output> arguments, FunctionRef then_branch,
                           FunctionRef else_branch);
  struct WhileArguments {
    std::vector<Output> carried, sequences, captured;
    FunctionRef body, cond;           // if cond is null, the loop runs max_iterations times
    int64_t max_iterations = 0;       // required
    int64_t stacked = 0, summed = 0;  // counts of the body's results after the carried ones
    bool reverse = false;
    bool keep_carried = false;  // for gradients
  };
  struct WhileResults {
    std::vector<Output> carried;
    Output iterations;
    std::vector<Output> stacked, summed;
  };
  WhileResults whileLoop(WhileArguments loop);

  // ---- random numbers (standard_random_ops.cc)
  Output randomUniform(Output seed, Shape shape, int64_t stream = 0);
  Output randomNormal(Output seed, Shape shape, int64_t stream = 0);

  // ---- effects
  NodeId applyGradient(Output variable, Output gradient);
  NodeId applySparseGradient(Output variable, Output gradient, Output indices);

  // Adds any op. The node is named `name`, or after the op if that is empty, under the scope.
  NodeId node(std::string op, std::vector<Output> inputs, Attributes attributes = {},
              std::string_view name = {}, std::vector<NodeId> control_inputs = {});

 private:
  Output op(std::string op, std::vector<Output> inputs, Attributes attributes = {});

  Graph& graph_;
  std::string name_scope_;  // empty, or ends in '/'
  DeviceName device_;
};

}  // namespace dtf::graph
