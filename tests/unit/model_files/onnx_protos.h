#pragma once

// Messages of onnx.proto that dtf reads and doesn't write.

#include <cstdint>
#include <cstring>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <utility>
#include <vector>

namespace dtf::model_files {

template <class T>
std::string bytesOf(const std::vector<T>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)};
}

// TensorProto, without its data.
inline std::string tensorProto(const std::string& name, const std::vector<int64_t>& dims,
                               int32_t type) {
  std::string tensor;
  protozero::pbf_writer proto(tensor);
  proto.add_packed_int64(1, dims.begin(), dims.end());
  proto.add_int32(2, type);
  proto.add_string(8, name);
  return tensor;
}

inline std::string withRaw(std::string tensor, const std::string& raw) {
  protozero::pbf_writer(tensor).add_bytes(9, raw);
  return tensor;
}

inline std::string withPlace(std::string tensor,
                             const std::vector<std::pair<std::string, std::string>>& entries) {
  protozero::pbf_writer proto(tensor);
  for (const auto& [key, value] : entries) {
    protozero::pbf_writer entry(proto, 13);
    entry.add_string(1, key);
    entry.add_string(2, value);
  }
  proto.add_enum(14, 1);
  return tensor;
}

// A model of these initializers.
inline std::string modelProto(const std::vector<std::string>& tensors,
                              const std::vector<std::string>& nodes = {}) {
  std::string graph, model;
  protozero::pbf_writer proto(graph);
  for (const std::string& node : nodes) proto.add_message(1, node);
  for (const std::string& tensor : tensors) proto.add_message(5, tensor);
  protozero::pbf_writer(model).add_message(7, graph);
  return model;
}

}  // namespace dtf::model_files
