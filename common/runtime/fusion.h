#pragma once

// Joins operations of a step where one kernel does the work of several better. Each fusion is an op
// of its own in the kernel table; a device without that kernel keeps the separate ones.

#include <array>
#include <string_view>

#include "common/runtime/kernel.h"
#include "common/runtime/lowering.h"

namespace dtf::runtime {

// A classifier's last layer with at most kFusedSoftmaxClassesMax classes (fused_softmax.h):
//
//   [Normalise ->] [Reshape ->] MatMul(x, W) -> BiasAdd(b) ->
//   SparseSoftmaxCrossEntropyWithLogits(labels) -> Mean, Accuracy(logits, labels), and the
//   gradients: MulRows, BiasAddGrad, MatMul(x^T, .).
//
// Inputs: x (float32, or uint8 with the attribute `scale`), W, b, labels. Attributes:
// gradient_scale (double, the gradient of each example's loss), and one bool per result; outputs
// are the results that are true, in this order.
inline constexpr std::string_view kFusedSoftmaxOp = "_FusedSoftmax";
inline constexpr std::array<std::string_view, 5> kFusedSoftmaxResults = {
    "loss", "accuracy", "logits_gradient", "weights_gradient", "bias_gradient"};

// The end of a convolutional layer, and what goes back through it:
//
//   BiasAdd(x, b) -> Relu -> MaxPool           inputs x, b; outputs of MaxPool, but where the
//                                              maximum isn't above 0 its number is 255: no gradient
//                                              goes there
//   MaxPoolGrad -> ReluGrad [-> BiasAddGrad]   inputs dy and that argmax; outputs dx, and db where
//                                              the attribute bias_gradient is true
//
// What lies between them is four times as large as y and is never written. Attributes are those of
// the pooling.
inline constexpr std::string_view kFusedPoolOp = "_FusedBiasReluMaxPool";
inline constexpr std::string_view kFusedPoolGradOp = "_FusedBiasReluMaxPoolGrad";
inline constexpr uint8_t kFusedPoolClosed = 255;

// The same with the convolution of a first layer, whose images have at most kFusedConvChannelsMax
// channels:
//
//   Conv2D(x, f) -> BiasAdd(., b) -> Relu -> MaxPool       inputs x, f, b; outputs as above
//   MaxPoolGrad -> ReluGrad -> Conv2DBackpropFilter(x, .)  inputs dy, argmax, x; outputs df, and db
//                          [-> BiasAddGrad]                as above
//
// A few images at a time: what the convolution makes stays in the caches. The convolution's
// attributes have kFusedConvPrefix before their names, as the pooling has some of the same.
inline constexpr std::string_view kFusedConvPoolOp = "_FusedConvBiasReluMaxPool";
inline constexpr std::string_view kFusedConvPoolGradOp = "_FusedConvBiasReluMaxPoolGrad";
inline constexpr std::string_view kFusedConvPrefix = "conv_";
inline constexpr int64_t kFusedConvChannelsMax = 4;

// A normalisation over the batch, what a residual block adds to it, and the relu; and what goes
// back through them:
//
//   FusedBatchNorm(x, scale, offset) [-> Add(., residual)] -> Relu   inputs x, scale, offset [,
//                                                                    residual]; outputs of
//                                                                    FusedBatchNorm, but the first
//                                                                    is the relu's
//   [AddN ->] ReluGrad(dy, y) ->                                     inputs scale, mean, inverse,
//     FusedBatchNormGrad(., x, scale, mean, inverse)                 offset, x, y (but where
//                                                                    mask_from_x says that x tells
//                                                                    where it is above 0), dy or
//                                                                    the two that make it; outputs
//                                                                    dx, dscale, doffset, and that
//                                                                    of ReluGrad where others read
//                                                                    it
//
// Each pass over such a tensor is one over memory.
inline constexpr std::string_view kFusedBatchNormReluOp = "_FusedBatchNormRelu";
inline constexpr std::string_view kFusedBatchNormReluGradOp = "_FusedBatchNormReluGrad";

// A dense layer's product with what follows it, in float32:
//
//   MatMul(a, b) -> BiasAdd(., bias) [-> Relu]    inputs a, b, bias; attributes of MatMul, and the
//                                                 bool `relu`
//
// The product's library adds the bias before it writes: two passes over memory less.
inline constexpr std::string_view kFusedMatMulOp = "_FusedMatMul";

// Rewrites the operations of `step` into all but the last of these. What would exist only inside a
// fused operation is not fused away when someone outside reads it (a fetch, a push, another
// operation).
void fuse(LoweredStep& step, const KernelTable& kernels, DeviceType device);

// Into the last, behind usePrecision(), which knows the parts alone. The operations must be in
// topological order, and stay so.
void fuseProducts(LoweredStep& step, const KernelTable& kernels, DeviceType device);

}  // namespace dtf::runtime
