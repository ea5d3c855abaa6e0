#include "common/checkpoint/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/json.h"
#include "common/base/text.h"

namespace dtf::checkpoint {

namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr size_t kMetadataPairsMax = 1u << 16;
constexpr size_t kTensorValuesMax = 64;  // numbers and texts that describe one tensor
constexpr char kMetadata[] = "__metadata__";

[[noreturn]] void fail(const std::string& why) {
  throw Error(ErrorCode::kBadData, printable(why));
}

[[noreturn]] void failTensor(const std::string& name, const std::string& why) {
  fail("tensor '" + name.substr(0, 200) + "': " + why);
}

// Returns 0 for an unknown type.
uint64_t bytesOf(std::string_view dtype) {
  if (dtype == "BOOL" || dtype == "U8" || dtype == "I8" || dtype.starts_with("F8_")) return 1;
  if (dtype == "I16" || dtype == "U16" || dtype == "F16" || dtype == "BF16") return 2;
  if (dtype == "I32" || dtype == "U32" || dtype == "F32") return 4;
  if (dtype == "I64" || dtype == "U64" || dtype == "F64") return 8;
  return 0;
}

uint64_t unsignedOf(const std::string& tensor, const char* what, const Json& value) {
  if (!value.isUnsigned())
    failTensor(tensor, std::string(what) + " holds a value that is not a non-negative integer");
  return value.asUint64();
}

SafetensorsEntry entryOf(const std::string& name, const Json& object) {
  SafetensorsEntry entry;
  entry.name = name;
  if (object.size() != 3 || !object.contains("dtype") || !object.contains("shape") ||
      !object.contains("data_offsets"))
    failTensor(name, "it must have dtype, shape and data_offsets, and nothing else");
  const Json& dtype = object["dtype"];
  if (!dtype.isString() || bytesOf(dtype.asString()) == 0) failTensor(name, "its dtype is unknown");
  entry.dtype = dtype.asString();
  const Json& shape = object["shape"];
  const Json& offsets = object["data_offsets"];
  if (!shape.isArray() || shape.size() > kSafetensorsRankMax)
    failTensor(name, "its shape is no list, or too long");
  if (!offsets.isArray() || offsets.size() != 2)
    failTensor(name, "its data_offsets are not two numbers");
  uint64_t bytes = bytesOf(entry.dtype);
  for (const Json& dim : shape) {
    entry.shape.push_back(unsignedOf(name, "shape", dim));
    if (__builtin_mul_overflow(bytes, entry.shape.back(), &bytes))
      failTensor(name, "its size overflows 64 bits");
  }
  entry.begin = unsignedOf(name, "data_offsets", offsets[0]);
  entry.end = unsignedOf(name, "data_offsets", offsets[1]);
  if (entry.end < entry.begin || entry.end - entry.begin != bytes)
    failTensor(name, "its data_offsets [" + std::to_string(entry.begin) + ", " +
                         std::to_string(entry.end) + "] don't hold the " + std::to_string(bytes) +
                         " bytes of its shape");
  return entry;
}

// Collects the entries while the header is parsed and drops the JSON: the tree of a 100 MB header
// would take gigabytes.
class HeaderReader final : public JsonVisitor {
 public:
  void onObject(int depth) override {
    if (depth > 1) fail("'" + name_ + "' holds an object, which the format doesn't allow");
    values_ = 0;
  }
  void onArray(int depth) override {
    if (depth != 2) fail("'" + name_ + "' is or holds a list, which the format doesn't allow");
  }
  void onKey(int depth, const std::string& key) override {
    if (depth == 1) name_ = key;
  }
  void onValue(int depth) override {
    if (depth < 2) fail("the header must be an object of objects");
    if (++values_ > (name_ == kMetadata ? kMetadataPairsMax : kTensorValuesMax))
      failTensor(name_, "too many values");
  }
  bool keeps(int depth, const Json& value) override {
    if (depth == 1) take(value);
    return depth != 1;
  }

  SafetensorsHeader header;

 private:
  void take(const Json& object) {
    if (name_ != kMetadata) {
      header.entries.push_back(entryOf(name_, object));
      return;
    }
    for (const auto& [name, text] : object.members()) {
      if (!text.isString()) fail("__metadata__ may only hold texts");
      header.metadata[name] = text.asString();
    }
  }

  std::string name_;  // of the object inside the header that is being read
  size_t values_ = 0;
};

// Sorts the entries by offset and checks that they tile the data section.
void checkTiling(std::vector<SafetensorsEntry>& entries, uint64_t data_bytes) {
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  uint64_t at = 0;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.begin != at)
      failTensor(entry.name, "its data begin at " + std::to_string(entry.begin) +
                                 (entry.begin < at ? ", inside the tensor before it"
                                                   : ", after a hole from " + std::to_string(at)));
    at = entry.end;
    if (at > data_bytes)
      failTensor(entry.name, "its data end at " + std::to_string(at) + ", but there are only " +
                                 std::to_string(data_bytes) + " bytes");
  }
  if (at != data_bytes)
    fail("the tensors end at " + std::to_string(at) + ", but there are " +
         std::to_string(data_bytes) + " bytes of data");
}

}  // namespace

SafetensorsHeader parseSafetensorsHeader(std::string_view text, uint64_t data_bytes) {
  if (!text.starts_with('{')) fail("the header does not begin with '{'");
  HeaderReader reader;
  Json::parse(text, kJsonDepthMax, &reader);
  checkTiling(reader.header.entries, data_bytes);
  DTF_CHECK(reader.header.entries.empty() || reader.header.entries.back().end == data_bytes);
  return std::move(reader.header);
}

SafetensorsHeader readSafetensorsHeader(const ReadableFile& file,
                                        const std::filesystem::path& path) {
  try {
    if (file.size() < 8) fail("it is shorter than the 8 bytes of a header size");
    uint64_t header_bytes = 0;
    file.read(0, &header_bytes, sizeof header_bytes);
    if (header_bytes > kSafetensorsHeaderBytesMax || header_bytes > file.size() - 8)
      fail("its header would have " + std::to_string(header_bytes) + " bytes; the file has " +
           std::to_string(file.size()) + ", a header at most " +
           std::to_string(kSafetensorsHeaderBytesMax));
    std::string text(header_bytes, '\0');
    file.read(8, text.data(), text.size());
    SafetensorsHeader header = parseSafetensorsHeader(text, file.size() - 8 - header_bytes);
    header.data_begin = 8 + header_bytes;
    return header;
  } catch (const Error& error) {
    throw Error(ErrorCode::kBadData, path.string() + ": " + error.message());
  }
}

std::string encodeSafetensorsHeader(std::span<const SafetensorsEntry> entries,
                                    const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header[kMetadata] = metadata;
  // Appends to the text, not to the tree: an ordered object searches all its keys for each insert.
  std::string text = header.dump();
  DTF_CHECK(text.ends_with('}'));
  text.pop_back();
  for (const SafetensorsEntry& entry : entries) {
    DTF_CHECK(!entry.name.empty() && entry.name != kMetadata && entry.begin <= entry.end);
    const Json object = {{"dtype", entry.dtype},
                         {"shape", entry.shape},
                         {"data_offsets", Json::array({entry.begin, entry.end})}};
    if (text.size() > 1) text += ',';
    text += Json(entry.name).dump() + ':' + object.dump();
  }
  text += '}';
  text.resize((text.size() + 7) / 8 * 8, ' ');
  if (text.size() > kSafetensorsHeaderBytesMax)
    throw Error(ErrorCode::kCannotWrite,
                "a safetensors header of " + std::to_string(text.size()) +
                    " bytes is larger than the format allows: use more ps, or without ps more "
                    "workers");
  const uint64_t size = text.size();
  std::string bytes(sizeof size, '\0');
  std::memcpy(bytes.data(), &size, sizeof size);
  return bytes + text;
}

}  // namespace dtf::checkpoint
