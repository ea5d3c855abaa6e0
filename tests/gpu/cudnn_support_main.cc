// Asks cuDNN, without a GPU, which convolutions an H200 can run: cuDNN takes a device's properties
// as JSON. A configuration that it offers can run there, at an unknown speed. Each question is a
// process of its own: a library that crashes on it has answered it.
//
//   cudnn_support PROPERTIES.json PASS BATCH HEIGHT WIDTH CHANNELS OUT_CHANNELS WINDOW STRIDE
//                 BEFORE AFTER GROUPS
//   prints "N float32, N TF32, N bfloat16"
//   cudnn_support --version

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <string>

#include "gpu/convolution_graph.h"

namespace dtf::gpu {
namespace {

Descriptor deviceProperties(const char* file) {
  std::ifstream in(file);
  const std::string json{std::istreambuf_iterator<char>(in), {}};
  Descriptor properties(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  properties
      .set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
           static_cast<int64_t>(json.size()), json.data())
      .finalise();
  return properties;
}

// An operation in the form that a step has.
Operation operationOf(const std::string& pass, const int64_t* n, dtf_plugin_dtype images) {
  const int64_t batch = n[0], height = n[1], width = n[2], channels = n[3], outs = n[4];
  const int64_t window = n[5], stride = n[6], before = n[7], after = n[8], groups = n[9];
  const int64_t out_height = (height + before + after - window) / stride + 1;
  const int64_t out_width = (width + before + after - window) / stride + 1;
  const int64_t x[] = {batch, height, width, channels};
  const int64_t filter[] = {window, window, channels / groups, outs};
  const int64_t y[] = {batch, out_height, out_width, outs};
  const auto tensor = [&](const int64_t* dims) {
    return dtf_plugin_tensor{dims == filter ? DTF_PLUGIN_FLOAT32 : images, 4, dims};
  };
  const bool input = pass == "backprop_input", forward = pass == "forward";
  const dtf_plugin_tensor inputs[] = {tensor(input ? filter : x), tensor(forward ? filter : y)};
  const dtf_plugin_tensor output = tensor(forward ? y : input ? x : filter);
  std::vector<dtf_plugin_attribute> attributes;
  const auto add = [&attributes](const char* key, int64_t value) {
    dtf_plugin_attribute attribute = {};
    attribute.key = key, attribute.type = DTF_PLUGIN_INTEGER, attribute.integer = value;
    attributes.push_back(attribute);
  };
  for (const char* key : {"padding_top", "padding_left"}) add(key, before);
  for (const char* key : {"padding_bottom", "padding_right"}) add(key, after);
  for (const char* key : {"stride_height", "stride_width"}) add(key, stride);
  add("groups", groups);
  return Operation(
      {"asked", "Conv2D", attributes.data(), attributes.size(), inputs, 2, &output, 1});
}

int run(char** arguments) {
  const std::string pass = arguments[2];
  int64_t numbers[10];
  for (int i = 0; i < 10; ++i) numbers[i] = std::atoll(arguments[3 + i]);
  const Pass which = pass == "forward"          ? Pass::kForward
                     : pass == "backprop_input" ? Pass::kBackpropInput
                                                : Pass::kBackpropFilter;
  const Descriptor properties = deviceProperties(arguments[1]);
  const auto count = [&](dtf_plugin_dtype images, Rounding rounding) {
    const Convolution convolution(operationOf(pass, numbers, images), which);
    const std::vector<Descriptor> configs =
        engineConfigs(convolutionGraph(convolution, which, nullptr), properties);
    return static_cast<int>(std::count_if(
        configs.begin(), configs.end(),
        [rounding](const Descriptor& config) { return keepsPromise(config, rounding); }));
  };
  std::printf("%d float32, %d TF32, %d bfloat16\n", count(DTF_PLUGIN_FLOAT32, Rounding::kFloat32),
              count(DTF_PLUGIN_FLOAT32, Rounding::kTf32),
              count(DTF_PLUGIN_BFLOAT16, Rounding::kTf32));
  return 0;
}

}  // namespace
}  // namespace dtf::gpu

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "--version") {
    std::printf("%zu\n", cudnnGetVersion());
    return 0;
  }
  if (argc != 13) return 2;
  try {
    return dtf::gpu::run(argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
