#pragma once

// A tensor of an ONNX model (TensorProto): an initializer, or the value of a Constant node.

#include <cstdint>
#include <optional>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "common/model_files/onnx_place.h"
#include "common/model_files/stored_floats.h"

namespace dtf::model_files {

// Value type.
// Borrows: the bytes of the model, in `raw`.
struct OnnxTensor {
  std::string name;
  std::vector<int64_t> dims;
  int64_t type = 0;  // TensorProto.DataType
  std::string_view raw;
  std::vector<float> floats;           // numbers that are no bytes, as some exporters write them
  std::vector<double> doubles;         // float64
  std::vector<uint16_t> halves;        // float16, bfloat16
  std::optional<OnnxPlace> elsewhere;  // in another file
};

OnnxTensor readOnnxTensor(protozero::pbf_reader proto);

// Returns the type of the tensor's elements if they are floating-point numbers.
std::optional<StoredFloat> onnxFloatOf(const OnnxTensor& tensor);

// Returns the bytes of the tensor's elements that are in the model itself.
std::string_view ownBytes(const OnnxTensor& tensor);

// Returns the size of a tensor of these dimensions; nullopt: they are negative, too many, or too
// large.
std::optional<uint64_t> onnxBytes(const OnnxTensor& tensor, StoredFloat type);

}  // namespace dtf::model_files
