#pragma once

// Writes the messages of onnx.proto that make up a model, with the field numbers of ONNX's IR
// version 8. It infers no shape, and doesn't check nodes against their operators.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/tensor/dtype.h"

namespace dtf::model_files {

inline constexpr int64_t kOnnxIrVersion = 8;
inline constexpr int64_t kOnnxOpset = 17;

int64_t onnxType(DType dtype);  // TensorProto.DataType

struct OnnxAttribute {
  std::string name;
  std::variant<int64_t, float, std::vector<int64_t>> value;
};

// An input or output of the graph. The batch, its first dimension, has no fixed size.
struct OnnxValue {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<int64_t> example;  // the dimensions after the batch
};

// Owns: the encoded nodes and constants so far.
// Threads: thread-compatible.
class OnnxProto {
 public:
  void addNode(std::string_view op, std::span<const std::string> inputs, const std::string& output,
               std::span<const OnnxAttribute> attributes);
  void addConstant(const std::string& name, std::span<const int64_t> dims,
                   std::span<const float> values);
  void addConstant(const std::string& name, std::span<const int64_t> values);  // of one dimension

  // Returns the whole file; call it once, last.
  // Errors: kCannotWrite when it is larger than protobuf allows, 2 GiB.
  std::string finish(const std::string& name, std::span<const OnnxValue> inputs,
                     std::span<const OnnxValue> outputs,
                     const std::map<std::string, std::string>& metadata);

 private:
  std::string graph_;
  uint64_t nodes_ = 0;
};

}  // namespace dtf::model_files
