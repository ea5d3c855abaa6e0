#pragma once

// How the numbers of a weight lie in a file, compared with dtf's variable. Programs differ in three
// things: a matrix is [inputs, units] or [units, inputs]; a filter is [height, width, channels,
// filters] or [filters, channels, height, width]; and the rows of a matrix that reads a flattened
// image go by height, width, channel or by channel, height, width. A square matrix fits in both
// ways, so shapes can't tell.

#include <cstdint>
#include <string_view>

namespace dtf::model_files {

enum class WeightLayout : uint8_t {
  kDtf,      // the first of each, as TensorFlow's
  kPyTorch,  // the second of each
  // Of ONNX, whose nodes say how they use a weight. Matrices and filters were turned when they were
  // read:
  kChannelRows,  // the rows of an image go by channel, height, width
  kInputRows,    // the rows are the model's input, flattened: FoundWeights::input
  kUnknownRows,  // what the rows are was made in a way that isn't followed
  kUnknown,      // no node says how the weight is used
};

// The key of the metadata that only files of dtf have (trained_model.h): their weights lie as kDtf.
inline constexpr std::string_view kWriterKey = "dtf_version";

}  // namespace dtf::model_files
