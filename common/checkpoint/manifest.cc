#include "common/checkpoint/manifest.h"

#include <algorithm>
#include <cmath>

#include "common/base/check.h"
#include "common/base/checksum.h"
#include "common/base/error.h"
#include "common/base/json.h"
#include "common/checkpoint/manifest_json.h"

namespace dtf::checkpoint {

namespace {

constexpr int kDepthMax = 6;
constexpr size_t kShardsMax = 4096;
constexpr char kSealBegin[] = ",\n \"manifest_checksum\": \"";
constexpr size_t kHexDigits = 16;
constexpr char kSealEnd[] = "\"}\n";
constexpr size_t kSealEndBytes = sizeof kSealEnd - 1;

struct Range {
  uint64_t begin = 0;
  uint64_t count = 0;
};

// A variable or slot that the parts must cover, and the ranges of the parts found so far.
struct Tensor {
  uint64_t elements = 0;
  std::vector<Range> ranges;
};
using Tensors = std::map<std::string, Tensor, std::less<>>;

std::string addTensor(Tensors& tensors, const std::string& name, const Shape& shape) {
  if (!isVariableName(name))
    return "'" + name.substr(0, 200) + "' is not a valid name of a variable";
  const auto elements = static_cast<uint64_t>(shape.elements());
  if (elements > kElementsMax) return name + " has too many elements";
  if (!tensors.emplace(name, Tensor{elements, {}}).second) return name + " is listed twice";
  return {};
}

std::string collectTensors(const Manifest& manifest, Tensors& tensors) {
  for (const VariableInfo& variable : manifest.variables) {
    std::string problem = addTensor(tensors, variable.name, variable.shape);
    for (size_t i = 0; problem.empty() && i < variable.slots.size(); ++i)
      problem = addTensor(tensors, variable.name + "/" + variable.slots[i], variable.shape);
    if (!problem.empty()) return problem;
  }
  return {};
}

// Adds the ranges of a file. Its parts must follow each other without a gap up to the file's end.
std::string collectRanges(const ShardFile& shard, Tensors& tensors) {
  uint64_t at = shard.parts.empty() ? shard.bytes : shard.parts.front().offset;
  if (at < 8 || at > shard.bytes) return shard.file + " has no room for a header";
  for (const StoredPart& part : shard.parts) {
    const auto found = tensors.find(part.name);
    if (found == tensors.end())
      return shard.file + " holds '" + part.name.substr(0, 200) +
             "', which is not a variable of the manifest";
    const uint64_t elements = found->second.elements;
    if (part.count == 0 || part.begin > elements || part.count > elements - part.begin)
      return shard.file + " holds elements outside of " + part.name;
    if (part.offset != at || part.count * sizeof(float) > shard.bytes - at)
      return shard.file + ": " + part.name +
             " overlaps another tensor, leaves a gap, or ends after the file";
    at += part.count * sizeof(float);
    found->second.ranges.push_back({part.begin, part.count});
  }
  if (at != shard.bytes) return shard.file + " has bytes after its last tensor";
  return {};
}

std::string tilingProblem(const std::string& name, Tensor& tensor) {
  std::sort(tensor.ranges.begin(), tensor.ranges.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  uint64_t at = 0;
  for (const Range& range : tensor.ranges) {
    if (range.begin != at)
      return "element " + std::to_string(std::min(at, range.begin)) + " of " + name +
             (range.begin < at ? " is stored twice" : " is stored nowhere");
    at += range.count;
  }
  if (at != tensor.elements)
    return "element " + std::to_string(at) + " of " + name + " is stored nowhere";
  return {};
}

}  // namespace

std::string manifestProblem(const Manifest& manifest) {
  const size_t shards = manifest.shards.size();
  if (shards == 0 || shards > kShardsMax)
    return std::to_string(shards) + " shards, instead of 1 to " + std::to_string(kShardsMax);
  if (!manifest.clocks.empty() && manifest.clocks.size() != shards)
    return std::to_string(manifest.clocks.size()) + " optimizer clocks for " +
           std::to_string(shards) + " shards";
  for (const ClockState& clock : manifest.clocks)
    if (!std::isfinite(clock.beta1_power) || !std::isfinite(clock.beta2_power))
      return "an optimizer clock that is not finite";
  if (!std::isfinite(manifest.run_seconds) || manifest.run_seconds < 0)
    return "run_seconds is negative or not finite";
  // The ps look for this folder, so it must not be a path.
  if (!manifest.stays_in.empty() && !isPlainName(manifest.stays_in))
    return "'" + manifest.stays_in.substr(0, 200) + "' is not a valid name of a folder";
  Tensors tensors;
  std::string problem = collectTensors(manifest, tensors);
  for (size_t i = 0; problem.empty() && i < shards; ++i) {
    const ShardFile& shard = manifest.shards[i];
    const std::string name = shardFileName(static_cast<uint32_t>(i), static_cast<uint32_t>(shards));
    if (shard.file != name)
      return "shard " + std::to_string(i) + " is not called " + name + " but '" +
             shard.file.substr(0, 200) + "'";
    problem = collectRanges(shard, tensors);
  }
  for (auto at = tensors.begin(); problem.empty() && at != tensors.end(); ++at)
    problem = tilingProblem(at->first, at->second);
  return problem;
}

std::string encodeManifest(const Manifest& manifest) {
  const std::string problem = manifestProblem(manifest);
  if (!problem.empty())
    throw Error(ErrorCode::kBadConfig, "this manifest can't be written: " + problem);
  std::string text;
  try {
    text = manifestToJson(manifest).dumpStrict(1);
  } catch (const Error& error) {  // a text that isn't UTF-8
    throw Error(ErrorCode::kBadConfig, "this manifest can't be written: " + error.message());
  }
  DTF_CHECK(text.ends_with("\n}"));
  text.resize(text.size() - 2);
  text += kSealBegin;
  const std::string seal = hexOf(checksumOf(text));
  DTF_CHECK(seal.size() == kHexDigits);
  text += seal + kSealEnd;
  if (text.size() > kManifestBytesMax)
    throw Error(ErrorCode::kBadConfig, "a manifest of " + std::to_string(text.size()) +
                                           " bytes is too large: use fewer variables or ps tasks");
  return text;
}

Manifest decodeManifest(std::string_view bytes, std::string_view where) {
  const auto fail = [&](const std::string& why) {
    throw Error(ErrorCode::kBadData, std::string(where) + ": " + why);
  };
  if (bytes.size() > kManifestBytesMax) fail("it is too large for a manifest");
  if (bytes.size() < kHexDigits + kSealEndBytes || !bytes.ends_with(kSealEnd))
    fail("it does not end with a manifest's checksum: it is damaged or truncated");
  const size_t sealed = bytes.size() - kHexDigits - kSealEndBytes;
  const std::string expected = hexOf(checksumOf(bytes.substr(0, sealed)));
  if (bytes.substr(sealed, kHexDigits) != expected) fail("its checksum is wrong: it is damaged");
  return decodeManifestJson(bytes, where);
}

Manifest decodeManifestJson(std::string_view json, std::string_view where) {
  try {
    Manifest manifest = manifestFromJson(Json::parse(json, kDepthMax));
    const std::string problem = manifestProblem(manifest);
    if (!problem.empty()) throw Error(ErrorCode::kBadData, problem);
    return manifest;
  } catch (const Error& error) {
    throw Error(ErrorCode::kBadData, std::string(where) + ": " + error.message());
  }
}

}  // namespace dtf::checkpoint
