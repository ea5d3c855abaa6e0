#include "common/model_files/weight_reader.h"

#include <fmt/core.h>

#include <cstring>
#include <limits>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/file.h"
#include "common/base/file_system.h"
#include "common/checkpoint/safetensors.h"
#include "common/data/npy_reader.h"
#include "common/data/zip_archive.h"

namespace dtf::model_files {

namespace {

constexpr uint64_t kOnnxBytesMax = std::numeric_limits<int32_t>::max();  // protobuf's

// The header has been checked against the file: every shape is as large as its data.
FoundWeights readSafetensors(const std::filesystem::path& path) {
  std::error_code ignored;
  const std::filesystem::path real = std::filesystem::canonical(path, ignored);
  const auto file = realFileSystem().open(ignored ? path : real);
  const checkpoint::SafetensorsHeader header = checkpoint::readSafetensorsHeader(*file, path);
  FoundWeights found;
  for (const checkpoint::SafetensorsEntry& entry : header.entries) {
    if (entry.dtype != "F32") {
      found.skipped.push_back(
          fmt::format("{}: its type is {}, only F32 is read", entry.name, entry.dtype));
      continue;
    }
    Tensor value(DType::kFloat32, Shape({entry.shape.begin(), entry.shape.end()}));
    if (value.bytes() > 0) file->read(header.data_begin + entry.begin, value.data(), value.bytes());
    found.tensors.push_back({entry.name, std::move(value)});
  }
  return found;
}

FoundWeights readNpz(const std::filesystem::path& path) {
  constexpr std::string_view kArray = ".npy";
  const data::ZipArchive archive(path);
  FoundWeights found;
  for (const std::string& entry : archive.names()) {
    if (!entry.ends_with(kArray)) continue;  // metadata
    const std::string name = entry.substr(0, entry.size() - kArray.size());
    const data::ByteBlock bytes = archive.read(entry, data::kNpyBytesMax);
    const data::NpyArray array =
        data::parseNpy({bytes.data(), bytes.size()}, fmt::format("{}: {}", path.string(), entry));
    if (array.header.type != data::NpyType::kFloat32) {
      found.skipped.push_back(fmt::format("{}: its type is {}, only float32 is read", name,
                                          data::npyTypeName(array.header.type)));
      continue;
    }
    Tensor value(DType::kFloat32, Shape(array.header.dims));
    DTF_CHECK(value.bytes() == array.bytes.size());
    if (value.bytes() > 0) std::memcpy(value.data(), array.bytes.data(), value.bytes());
    found.tensors.push_back({name, std::move(value)});
  }
  return found;
}

}  // namespace

FoundWeights readWeights(const std::filesystem::path& file) {
  const std::string ending = file.extension().string();
  if (ending == ".safetensors") return readSafetensors(file);
  if (ending == ".npz") return readNpz(file);
  if (ending == ".onnx") return parseOnnxWeights(readFile(file, kOnnxBytesMax), file.string());
  throw Error(
      ErrorCode::kUsage,
      fmt::format("{}: weights are read from .safetensors, .npz and .onnx files", file.string()));
}

}  // namespace dtf::model_files
