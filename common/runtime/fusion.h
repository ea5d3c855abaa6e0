#pragma once

// Joins operations of a step if one kernel computes several better. Each fusion is an op of its own
// in the kernel table; a device without that kernel keeps the separate operations.

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

// The end of a convolutional layer, and its gradient:
//
//   BiasAdd(x, b) -> Relu -> MaxPool           inputs x, b; outputs of MaxPool, but the argmax is
//                                               255 where the maximum isn't above 0: no
//                                               gradient passes there
//   MaxPoolGrad -> ReluGrad [-> BiasAddGrad]   inputs dy and that argmax; outputs dx, and db if
//                                               the attribute bias_gradient is true
//
// The tensors in between are four times as large as y and never written. Attributes are those of
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
// The kernel handles a few images at a time: the convolution's output stays in the caches.
// Attributes of the convolution have the prefix kFusedConvPrefix, as the pooling has some of the
// same names.
inline constexpr std::string_view kFusedConvPoolOp = "_FusedConvBiasReluMaxPool";
inline constexpr std::string_view kFusedConvPoolGradOp = "_FusedConvBiasReluMaxPoolGrad";
inline constexpr std::string_view kFusedConvPrefix = "conv_";
inline constexpr int64_t kFusedConvChannelsMax = 4;

// A batch normalisation, the residual added to it, and the relu; and their gradient:
//
//   FusedBatchNorm(x, scale, offset) [-> Add(., residual)] -> Relu   inputs x, scale, offset [,
//                                                                    residual]; outputs of
//                                                                    FusedBatchNorm, but the first
//                                                                    is the relu's
//   [AddN ->] ReluGrad(dy, y) ->                                     inputs scale, mean, inverse,
//     FusedBatchNormGrad(., x, scale, mean, inverse)                 offset, x, y (omitted if
//                                                                    mask_from_x: x then tells
//                                                                    where y is above 0), dy or
//                                                                    its two terms; outputs dx,
//                                                                    dscale, doffset, and the
//                                                                    ReluGrad's if it is read
//
// Each pass over such a tensor is one over memory.
inline constexpr std::string_view kFusedBatchNormReluOp = "_FusedBatchNormRelu";
inline constexpr std::string_view kFusedBatchNormReluGradOp = "_FusedBatchNormReluGrad";

// A dense layer's product with the operations after it, in float32:
//
//   MatMul(a, b) -> BiasAdd(., bias) [-> Relu]    inputs a, b, bias; attributes of MatMul, and the
//                                                 bool `relu`
//
// The library adds the bias before it writes: two passes over memory less.
inline constexpr std::string_view kFusedMatMulOp = "_FusedMatMul";

// Rewrites the operations of `step` into all of these but the last. A tensor that is read from
// outside (a fetch, a push, another operation) is never fused away.
void fuse(LoweredStep& step, const KernelTable& kernels, DeviceType device);

// Rewrites into the last, after usePrecision(), which only handles the separate operations. The
// operations must be in topological order, and stay so.
void fuseProducts(LoweredStep& step, const KernelTable& kernels, DeviceType device);

}  // namespace dtf::runtime
