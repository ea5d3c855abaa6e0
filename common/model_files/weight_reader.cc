#include "common/model_files/weight_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/file.h"
#include "common/base/file_system.h"
#include "common/base/json.h"
#include "common/base/text.h"
#include "common/checkpoint/safetensors.h"
#include "common/data/byte_source.h"
#include "common/data/file_kind.h"
#include "common/data/npy_reader.h"
#include "common/data/zip_archive.h"
#include "common/model_files/onnx_external.h"
#include "common/model_files/stored_floats.h"
#include "common/model_files/trained_model.h"

namespace dtf::model_files {

namespace {

constexpr uint64_t kOnnxBytesMax = std::numeric_limits<int32_t>::max();  // protobuf's
constexpr uint64_t kMetadataBytesMax = 16 << 20;
constexpr std::string_view kMetadata = "metadata.json";

// Whether it is PyTorch's counter of batches, which dtf lacks.
bool isOfNoUse(std::string_view name, std::optional<WeightLayout> stated) {
  return stated == WeightLayout::kPyTorch && name.ends_with("num_batches_tracked");
}

// Sets the layout of tensors in a file without nodes: the file's own, else the caller's.
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

// Adds a tensor of floating-point numbers, or says why it isn't read.
void add(FoundWeights& found, const std::string& name, StoredFloat type, std::string_view bytes,
         const Shape& shape) {
  Tensor value(DType::kFloat32, shape);
  if (const std::optional<std::string> mistake = readFloats(type, bytes, value.as<float>()))
    found.skipped.push_back({name, *mistake});
  else
    found.tensors.push_back({name, std::move(value)});
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
    const Shape shape({entry.shape.begin(), entry.shape.end()});
    const std::optional<StoredFloat> type = storedFloatOf(entry.dtype);
    if (!type) {
      found.skipped.push_back({entry.name, fmt::format("its type is {}, and F16, BF16, F32 and F64 "
                                                       "are read",
                                                       entry.dtype)});
      continue;
    }
    std::string bytes(entry.end - entry.begin, '\0');
    if (!bytes.empty()) file->read(header.data_begin + entry.begin, bytes.data(), bytes.size());
    add(found, entry.name, *type, bytes, shape);
  }
  setLayout(found, header.metadata.contains(std::string(kWriterKey)), stated, path);
  const auto signature = header.metadata.find(kSignatureEntry);
  if (signature != header.metadata.end()) found.signature = signature->second;
  return found;
}

// Returns the metadata of an archive that dtf wrote; null for another one.
Json metadataOf(const data::ZipArchive& archive) {
  const std::vector<std::string> names = archive.names();
  if (std::find(names.begin(), names.end(), kMetadata) == names.end()) return {};
  const data::ByteBlock bytes = archive.read(kMetadata, kMetadataBytesMax);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return Json::parseOrNull(text);
}

FoundWeights readNpz(const std::filesystem::path& path, std::optional<WeightLayout> stated) {
  constexpr std::string_view kArray = ".npy";
  // Trained weights hardly shrink; an archive that unpacks to more holds no model.
  constexpr uint64_t kUnpackedMin = uint64_t{64} << 20, kRatioMax = 100;
  const data::ZipArchive archive(path);
  uint64_t left = std::max(kUnpackedMin, archive.bytes() * kRatioMax);
  FoundWeights found;
  for (const std::string& entry : archive.names()) {
    if (!entry.ends_with(kArray)) continue;  // metadata
    const std::string name = entry.substr(0, entry.size() - kArray.size());
    if (isOfNoUse(name, stated)) continue;
    const data::ByteBlock bytes = archive.read(entry, left);
    left -= bytes.size();
    const std::string unread = data::unreadNpyElements({bytes.data(), bytes.size()});
    if (!unread.empty()) {
      found.skipped.push_back(
          {name, fmt::format("its elements are '{}', and floats are read", unread)});
      continue;
    }
    const data::NpyArray array =
        data::parseNpy({bytes.data(), bytes.size()}, fmt::format("{}: {}", path.string(), entry));
    const data::NpyType type = array.header.type;
    if (type != data::NpyType::kFloat32 && type != data::NpyType::kFloat64) {
      found.skipped.push_back(
          {name, fmt::format("its elements are {}, and floats are read", data::npyTypeName(type))});
      continue;
    }
    const std::string_view elements(reinterpret_cast<const char*>(array.bytes.data()),
                                    array.bytes.size());
    add(found, name,
        type == data::NpyType::kFloat64 ? StoredFloat::kFloat64 : StoredFloat::kFloat32, elements,
        Shape(array.header.dims));
  }
  const Json metadata = metadataOf(archive);
  setLayout(found, metadata.contains(kWriterKey), stated, path);
  const Json* const signature = metadata.find(kSignatureEntry);
  if (signature != nullptr && signature->isString()) found.signature = signature->asString();
  return found;
}

// Returns read(); for a file that is of another kind, the error names that kind.
template <class Read>
FoundWeights orKindOf(const std::filesystem::path& file, std::string_view expected,
                      const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kBadData) throw;
    std::array<uint8_t, data::kKindBytes> first{};
    data::ByteSource source(file);
    const size_t held = source.read(first.data(), first.size());
    const std::string kind =
        source.packed() ? "a file packed by gzip" : data::knownKind(std::span(first).first(held));
    // A header of safetensors: its size may look like a magic number.
    const bool is_safetensors = held > 8 && first[8] == '{';
    if (kind.empty() || is_safetensors) throw;
    throw Error(ErrorCode::kBadData,
                fmt::format("{}: this looks like {}; expected {}", file.string(), kind, expected));
  }
}

}  // namespace

FoundWeights readWeights(const std::filesystem::path& file, std::optional<WeightLayout> stated) {
  DTF_CHECK(!stated || *stated == WeightLayout::kDtf || *stated == WeightLayout::kPyTorch);
  // A pipe or a device would block its reader.
  std::error_code gone;
  const std::filesystem::file_type type = std::filesystem::status(file, gone).type();
  if (type != std::filesystem::file_type::regular && type != std::filesystem::file_type::not_found)
    throw Error(ErrorCode::kBadData, printable(file.string()) + ": not a regular file");
  const std::string ending = file.extension().string();
  if (ending == ".safetensors")
    return orKindOf(file, "a safetensors file", [&] { return readSafetensors(file, stated); });
  if (ending == ".npz") return readNpz(file, stated);
  if (ending != ".onnx")
    throw Error(
        ErrorCode::kUsage,
        fmt::format(
            "{}: weights are read from .safetensors, .npz and .onnx files: save them as one "
            "of these, as with safetensors.torch.save_file(model.state_dict(), 'w.safetensors')",
            file.string()));
  if (stated)
    throw Error(ErrorCode::kUsage,
                fmt::format("{}: an ONNX model says itself how its weights lie: leave --layout out",
                            file.string()));
  return orKindOf(file, "an ONNX model", [&] {
    ExternalData beside(file);
    return parseOnnxWeights(
        readFile(file, kOnnxBytesMax), file.string(),
        [&beside](const OnnxPlace& place, uint64_t bytes) { return beside.read(place, bytes); });
  });
}

}  // namespace dtf::model_files
