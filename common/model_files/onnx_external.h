#pragma once

// The files beside an ONNX model that hold its large tensors. torch.onnx.export() writes them by
// default, as model.onnx.data.
//
// The model is untrusted: it may only name regular files in its own folder and below, its tensors
// lie inside them, and together they take no more bytes than the files have.

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "common/base/file_system.h"
#include "common/model_files/onnx_place.h"

namespace dtf::model_files {

// Owns: the file that was read last.
// Threads: thread-compatible.
// Blocks: on the disk.
class ExternalData {
 public:
  explicit ExternalData(const std::filesystem::path& model);

  // Reads `bytes` bytes, the size of a tensor.
  // Errors: kBadData naming the file, not the tensor: it is missing, outside the folder of the
  // model (also by a symbolic link), no regular file, or too short; the place has another length;
  // the tensors share bytes. kPermission.
  std::string read(const OnnxPlace& place, uint64_t bytes);

 private:
  void open(const std::filesystem::path& path);
  std::filesystem::path pathOf(const std::string& location) const;

  const std::filesystem::path folder_;
  std::filesystem::path open_path_;
  std::unique_ptr<ReadableFile> open_;
  std::map<std::filesystem::path, uint64_t> left_;  // bytes that no tensor has taken yet
};

}  // namespace dtf::model_files
