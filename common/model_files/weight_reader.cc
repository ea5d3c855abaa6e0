#include "common/model_files/weight_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

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
constexpr uint64_t kMetadataBytesMax = 16 << 20;
constexpr std::string_view kMetadata = "metadata.json";

// PyTorch counts its batches; nothing of dtf does.
bool isOfNoUse(std::string_view name, std::optional<WeightLayout> stated) {
  return stated == WeightLayout::kPyTorch && name.ends_with("num_batches_tracked");
}

// How the tensors of a file without nodes lie: as it says itself, or as the caller does.
void setLayout(FoundWeights& found, bool own, std::optional<WeightLayout> stated,
               const std::filesystem::path& file) {
  if (own && stated == WeightLayout::kPyTorch)
    throw Error(ErrorCode::kUsage,
                fmt::format("{}: its metadata say that dtf wrote it, so its matrices are [inputs, "
                            "units]: leave --layout pytorch out, or save it without them",
                            file.string()));
  for (FoundTensor& tensor : found.tensors) {
    if (!own && !stated && tensor.value.shape().rank() > 1)
      throw Error(
          ErrorCode::kUsage,
          fmt::format("{}: how {} {} lies isn't said in the file, and its shape can't tell. Add "
                      "--layout pytorch (matrices [units, inputs], filters [filters, channels, "
                      "height, width], images flattened by channel) or --layout dtf (matrices "
                      "[inputs, units], filters [height, width, channels, filters], as "
                      "TensorFlow's)",
                      file.string(), tensor.name, tensor.value.shape().str()));
    tensor.layout = own ? WeightLayout::kDtf : stated.value_or(WeightLayout::kDtf);
  }
}

// The header has been checked against the file: every shape is as large as its data.
FoundWeights readSafetensors(const std::filesystem::path& path,
                             std::optional<WeightLayout> stated) {
  std::error_code ignored;
  const std::filesystem::path real = std::filesystem::canonical(path, ignored);
  const auto file = realFileSystem().open(ignored ? path : real);
  const checkpoint::SafetensorsHeader header = checkpoint::readSafetensorsHeader(*file, path);
  FoundWeights found;
  for (const checkpoint::SafetensorsEntry& entry : header.entries) {
    if (isOfNoUse(entry.name, stated)) continue;
    if (entry.dtype != "F32") {
      found.skipped.push_back(
          fmt::format("{}: its type is {}, only F32 is read", entry.name, entry.dtype));
      continue;
    }
    Tensor value(DType::kFloat32, Shape({entry.shape.begin(), entry.shape.end()}));
    if (value.bytes() > 0) file->read(header.data_begin + entry.begin, value.data(), value.bytes());
    found.tensors.push_back({entry.name, std::move(value)});
  }
  setLayout(found, header.metadata.contains(std::string(kWriterKey)), stated, path);
  return found;
}

// Whether an archive has the metadata of dtf's own.
bool isOwn(const data::ZipArchive& archive) {
  const std::vector<std::string> names = archive.names();
  if (std::find(names.begin(), names.end(), kMetadata) == names.end()) return false;
  const data::ByteBlock bytes = archive.read(kMetadata, kMetadataBytesMax);
  const nlohmann::json metadata =
      nlohmann::json::parse(bytes.data(), bytes.data() + bytes.size(), nullptr, false);
  return metadata.is_object() && metadata.contains(kWriterKey);
}

FoundWeights readNpz(const std::filesystem::path& path, std::optional<WeightLayout> stated) {
  constexpr std::string_view kArray = ".npy";
  const data::ZipArchive archive(path);
  FoundWeights found;
  for (const std::string& entry : archive.names()) {
    if (!entry.ends_with(kArray)) continue;  // metadata
    const std::string name = entry.substr(0, entry.size() - kArray.size());
    if (isOfNoUse(name, stated)) continue;
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
  setLayout(found, isOwn(archive), stated, path);
  return found;
}

}  // namespace

FoundWeights readWeights(const std::filesystem::path& file, std::optional<WeightLayout> stated) {
  DTF_CHECK(!stated || *stated == WeightLayout::kDtf || *stated == WeightLayout::kPyTorch);
  const std::string ending = file.extension().string();
  if (ending == ".safetensors") return readSafetensors(file, stated);
  if (ending == ".npz") return readNpz(file, stated);
  if (ending != ".onnx")
    throw Error(
        ErrorCode::kUsage,
        fmt::format("{}: weights are read from .safetensors, .npz and .onnx files", file.string()));
  if (stated)
    throw Error(ErrorCode::kUsage,
                fmt::format("{}: an ONNX model says itself how its weights lie: leave --layout out",
                            file.string()));
  return parseOnnxWeights(readFile(file, kOnnxBytesMax), file.string());
}

}  // namespace dtf::model_files
