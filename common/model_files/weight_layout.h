#pragma once

// The order of a weight's numbers in a file. Programs differ in three things: a matrix is [inputs,
// units] or [units, inputs]; a filter is [height, width, channels, filters] or [filters, channels,
// height, width]; and the rows of a matrix that reads a flattened image are ordered by height,
// width, channel or by channel, height, width. A square matrix fits both ways, so its shape can't
// tell.

#include <cstdint>
#include <string_view>

namespace dtf::model_files {

enum class WeightLayout : uint8_t {
  kDtf,      // the first of each, like TensorFlow
  kPyTorch,  // the second of each
  // ONNX: the nodes show how they use a weight. The reader has turned matrices and filters already:
  kChannelRows,  // the rows of an image go by channel, height, width
  kInputRows,    // the rows are the model's input, flattened: FoundWeights::input
  kUnknownRows,  // the order of the rows can't be followed
  kUnknown,      // no node shows how the weight is used
};

// The key of the metadata that only files of dtf have (trained_model.h): their layout is kDtf.
inline constexpr std::string_view kWriterKey = "dtf_version";

}  // namespace dtf::model_files
