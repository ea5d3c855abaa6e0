#include "gpu/convolution_graph.h"

#include <algorithm>
#include <array>

namespace dtf::gpu {
namespace {

// Dimensions in cuDNN's order: batch, channels, height, width; the strides make channels the
// innermost.
Descriptor tensorOf(TensorId id, Type of, int64_t n, int64_t channels, int64_t height,
                    int64_t width) {
  const cudnnDataType_t type = of == Type::kBFloat16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
  constexpr int64_t kAlignment = 16;
  Descriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type)
      .setInts(CUDNN_ATTR_TENSOR_DIMENSIONS, {n, channels, height, width})
      .setInts(CUDNN_ATTR_TENSOR_STRIDES,
               {height * width * channels, 1, width * channels, channels})
      .setInt(CUDNN_ATTR_TENSOR_UNIQUE_ID, static_cast<int64_t>(id))
      .setInt(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kAlignment)
      .finalise();
  return tensor;
}

Descriptor windowOf(const Window& w) {
  const cudnnDataType_t compute = CUDNN_DATA_FLOAT;
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  Descriptor window(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  window.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute)
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode)
      .setInt(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 2)
      .setInts(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, {w.height.before, w.width.before})
      .setInts(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, {w.height.after, w.width.after})
      .setInts(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, {w.height.stride, w.width.stride})
      .setInts(CUDNN_ATTR_CONVOLUTION_DILATIONS, {w.height.dilation, w.width.dilation})
      .finalise();
  return window;
}

// The names of one pass's attributes, by role.
struct PassAttributes {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t image, filter, out, window, alpha, beta;
};
constexpr std::array<PassAttributes, 3> kPasses = {{
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
     CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
}};

// Returns the notes on a configuration's engine.
std::vector<cudnnBackendNumericalNote_t> numericalNotes(const Descriptor& config) {
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t pointer = engine.get();
  int64_t count = 0;
  check(cudnnBackendGetAttribute(config.get(), CUDNN_ATTR_ENGINECFG_ENGINE,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &pointer),
        "asking for an engine");
  std::vector<cudnnBackendNumericalNote_t> notes(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  check(cudnnBackendGetAttribute(engine.get(), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                 CUDNN_TYPE_NUMERICAL_NOTE, static_cast<int64_t>(notes.size()),
                                 &count, notes.data()),
        "asking for an engine's notes");
  notes.resize(static_cast<size_t>(count));
  return notes;
}

// Returns whether the note means other rounding than a sum of float32 products.
bool roundsOtherwise(cudnnBackendNumericalNote_t note) {
  constexpr std::array kNotes = {CUDNN_NUMERICAL_NOTE_TENSOR_CORE,
                                 CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS,
                                 CUDNN_NUMERICAL_NOTE_FFT,
                                 CUDNN_NUMERICAL_NOTE_WINOGRAD,
                                 CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4,
                                 CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6,
                                 CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13};
  return std::find(kNotes.begin(), kNotes.end(), note) != kNotes.end();
}

}  // namespace

Descriptor convolutionGraph(const Convolution& c, Pass pass, cudnnHandle_t handle) {
  const PassAttributes& names = kPasses[static_cast<size_t>(pass)];
  Descriptor operation(names.operation);
  operation
      .setDescriptor(names.image,
                     tensorOf(TensorId::kImage, c.type, c.batch, c.channels, c.height, c.width))
      .setDescriptor(names.filter,
                     tensorOf(TensorId::kFilter, c.type, c.out_channels, c.group_channels,
                              c.window.height.size, c.window.width.size))
      .setDescriptor(names.out, tensorOf(TensorId::kOut, c.type, c.batch, c.out_channels,
                                         c.out_height, c.out_width))
      .setDescriptor(names.window, windowOf(c.window))
      .setFloat(names.alpha, 1)
      .setFloat(names.beta, 0)
      .finalise();
  Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.setDescriptor(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
  if (handle != nullptr) graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  graph.finalise();
  return graph;
}

bool keepsPromise(const Descriptor& config, Rounding rounding) {
  const std::vector<cudnnBackendNumericalNote_t> notes = numericalNotes(config);
  return std::none_of(notes.begin(), notes.end(), [rounding](cudnnBackendNumericalNote_t note) {
    return note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC ||
           note == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION ||
           (rounding == Rounding::kFloat32 && roundsOtherwise(note));
  });
}

}  // namespace dtf::gpu
