#pragma once

// A tensor of an ONNX model whose bytes lie in a file beside the model ("external data").

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace dtf::model_files {

// Value type.
struct OnnxPlace {
  std::string location;  // a path from the folder of the model
  uint64_t offset = 0;
  std::optional<uint64_t> length;
  std::string mistake;  // why offset or length can't be read; else empty
};

// Reads `bytes` bytes from a place in another file.
// Errors: kBadData, without the model's name.
using ReadElsewhere = std::function<std::string(const OnnxPlace&, uint64_t bytes)>;

}  // namespace dtf::model_files
