#include "common/model_files/onnx_tensor.h"

#include <charconv>

namespace dtf::model_files {

namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;
using protozero::tag_and_type;

constexpr auto kDelimited = pbf_wire_type::length_delimited;
constexpr auto kNumber = pbf_wire_type::varint;
// TensorProto, StringStringEntryProto
constexpr uint32_t kInTensorDims = 1, kInTensorType = 2, kInTensorFloats = 4, kInTensorIntegers = 5,
                   kInTensorName = 8, kInTensorRaw = 9, kInTensorDoubles = 10,
                   kInTensorExternal = 13, kInTensorLocation = 14;
constexpr uint32_t kInPairKey = 1, kInPairValue = 2;
// TensorProto.DataType
constexpr int64_t kDataFloat32 = 1, kDataFloat16 = 10, kDataFloat64 = 11, kDataBFloat16 = 16;
constexpr size_t kTensorDimsMax = 8;

std::string stringOf(protozero::data_view view) {
  return {view.data(), view.size()};
}

// Returns false if `text` is no whole number.
bool readNumber(const std::string& text, uint64_t& to) {
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, to);
  return error == std::errc() && stopped == end;
}

// Reads one pair of `external_data`. Other keys ("checksum") aren't needed.
void readPlace(pbf_reader entry, OnnxPlace& place) {
  std::string key, value;
  while (entry.next()) {
    if (entry.tag_and_type() == tag_and_type(kInPairKey, kDelimited))
      key = stringOf(entry.get_view());
    else if (entry.tag_and_type() == tag_and_type(kInPairValue, kDelimited))
      value = stringOf(entry.get_view());
    else
      entry.skip();
  }
  uint64_t number = 0;
  if (key == "location") {
    place.location = value;
  } else if (key == "offset" || key == "length") {
    if (!readNumber(value, number))
      place.mistake = "its " + key + " '" + value.substr(0, 40) + "' is no number";
    else if (key == "offset")
      place.offset = number;
    else
      place.length = number;
  }
}

template <class T>
std::string_view asBytes(const std::vector<T>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(T)};
}

}  // namespace

OnnxTensor readOnnxTensor(pbf_reader proto) {
  OnnxTensor tensor;
  OnnxPlace place;
  bool is_elsewhere = false;
  while (proto.next()) {
    switch (proto.tag_and_type()) {
      case tag_and_type(kInTensorDims, kNumber):
        tensor.dims.push_back(proto.get_int64());
        break;
      case tag_and_type(kInTensorDims, kDelimited):
        for (const int64_t dim : proto.get_packed_int64()) tensor.dims.push_back(dim);
        break;
      case tag_and_type(kInTensorType, kNumber):
        tensor.type = proto.get_int32();
        break;
      case tag_and_type(kInTensorFloats, kDelimited):
        for (const float value : proto.get_packed_float()) tensor.floats.push_back(value);
        break;
      case tag_and_type(kInTensorDoubles, kDelimited):
        for (const double value : proto.get_packed_double()) tensor.doubles.push_back(value);
        break;
      case tag_and_type(kInTensorIntegers, kDelimited):
        for (const int32_t bits : proto.get_packed_int32())
          tensor.halves.push_back(static_cast<uint16_t>(bits));
        break;
      case tag_and_type(kInTensorName, kDelimited):
        tensor.name = stringOf(proto.get_view());
        break;
      case tag_and_type(kInTensorRaw, kDelimited): {
        const protozero::data_view raw = proto.get_view();
        tensor.raw = {raw.data(), raw.size()};
        break;
      }
      case tag_and_type(kInTensorExternal, kDelimited):
        readPlace(proto.get_message(), place);
        break;
      case tag_and_type(kInTensorLocation, kNumber):
        is_elsewhere = proto.get_int32() != 0;
        break;
      default:
        proto.skip();
    }
  }
  if (is_elsewhere) tensor.elsewhere = std::move(place);
  return tensor;
}

std::optional<StoredFloat> onnxFloatOf(const OnnxTensor& tensor) {
  switch (tensor.type) {
    case kDataFloat32:
      return StoredFloat::kFloat32;
    case kDataFloat16:
      return StoredFloat::kFloat16;
    case kDataFloat64:
      return StoredFloat::kFloat64;
    case kDataBFloat16:
      return StoredFloat::kBFloat16;
    default:
      return std::nullopt;
  }
}

std::string_view ownBytes(const OnnxTensor& tensor) {
  switch (tensor.type) {
    case kDataFloat32:
      return tensor.floats.empty() ? tensor.raw : asBytes(tensor.floats);
    case kDataFloat64:
      return tensor.doubles.empty() ? tensor.raw : asBytes(tensor.doubles);
    default:
      return tensor.halves.empty() ? tensor.raw : asBytes(tensor.halves);
  }
}

std::optional<uint64_t> onnxBytes(const OnnxTensor& tensor, StoredFloat type) {
  uint64_t bytes = storedBytes(type);
  if (tensor.dims.size() > kTensorDimsMax) return std::nullopt;
  for (const int64_t dim : tensor.dims)
    if (dim < 0 || __builtin_mul_overflow(bytes, static_cast<uint64_t>(dim), &bytes))
      return std::nullopt;
  return bytes;
}

}  // namespace dtf::model_files
