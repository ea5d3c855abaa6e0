#include "common/checkpoint/manifest_json.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "common/base/check.h"
#include "common/base/checksum.h"
#include "common/base/error.h"

namespace dtf::checkpoint {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

[[noreturn]] void fail(const std::string& key, const std::string& why) {
  throw Error(ErrorCode::kBadData, "'" + key + "' " + why);
}

const json& member(const json& object, const char* key) {
  if (!object.is_object() || !object.contains(key)) fail(key, "is missing");
  return object[key];
}

std::string text(const json& object, const char* key) {
  const json& value = member(object, key);
  if (!value.is_string()) fail(key, "must be a text");
  return value.get<std::string>();
}

uint64_t asNumber(const json& value, const char* key) {
  if (!value.is_number_unsigned()) fail(key, "must be a number from 0 to 2^64 - 1");
  return value.get<uint64_t>();
}

uint64_t number(const json& object, const char* key) {
  return asNumber(member(object, key), key);
}

const json& list(const json& object, const char* key) {
  const json& value = member(object, key);
  if (!value.is_array()) fail(key, "must be a list");
  return value;
}

std::string exactText(double value) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%a", value);
  return buffer;
}

double exactNumber(const json& object, const char* key) {
  const std::string digits = text(object, key);
  char* end = nullptr;
  const double value = std::strtod(digits.c_str(), &end);
  // Only what exactText() writes: strtod() also takes "0.9", " 1" and "inf".
  if (!std::isfinite(value) || exactText(value) != digits)
    fail(key, "must be a number in hexadecimal floating point, as 0x1.8p-1");
  return value;
}

ordered_json toJson(const ShardFile& shard) {
  ordered_json tensors = ordered_json::array();
  for (const StoredPart& part : shard.parts)
    tensors.push_back({{"name", part.name},
                       {"begin", part.begin},
                       {"count", part.count},
                       {"offset", part.offset},
                       {"checksum", hexOf(part.checksum)}});
  ordered_json object = {{"file", shard.file},
                         {"bytes", shard.bytes},
                         {"checksum", hexOf(shard.checksum)},
                         {"tensors", std::move(tensors)}};
  if (!shard.host.empty()) object["host"] = shard.host;
  return object;
}

ShardFile shardFromJson(const json& object) {
  ShardFile shard;
  shard.file = text(object, "file");
  shard.bytes = number(object, "bytes");
  shard.checksum = fromHex(text(object, "checksum"));
  if (object.contains("host")) shard.host = text(object, "host");
  for (const json& part : list(object, "tensors"))
    shard.parts.push_back({text(part, "name"), number(part, "begin"), number(part, "count"),
                           number(part, "offset"), fromHex(text(part, "checksum"))});
  return shard;
}

VariableInfo variableFromJson(const json& object) {
  VariableInfo variable;
  variable.name = text(object, "name");
  std::vector<int64_t> dims;
  for (const json& dim : list(object, "shape")) {
    dims.push_back(static_cast<int64_t>(asNumber(dim, "shape")));
    if (dims.back() < 0) fail("shape", "of " + variable.name + " has a dimension beyond 2^63");
  }
  variable.shape = Shape(std::move(dims));
  for (const json& slot : list(object, "slots")) {
    if (!slot.is_string()) fail("slots", "must hold texts");
    variable.slots.push_back(slot.get<std::string>());
  }
  return variable;
}

}  // namespace

ordered_json manifestToJson(const Manifest& manifest) {
  DTF_CHECK(std::isfinite(manifest.run_seconds));  // JSON would say null
  ordered_json clocks = ordered_json::array();
  for (const ClockState& clock : manifest.clocks)
    clocks.push_back({{"applies", clock.applies},
                      {"beta1_power", exactText(clock.beta1_power)},
                      {"beta2_power", exactText(clock.beta2_power)}});
  ordered_json variables = ordered_json::array();
  for (const VariableInfo& variable : manifest.variables)
    variables.push_back(
        {{"name", variable.name}, {"shape", variable.shape.dims()}, {"slots", variable.slots}});
  ordered_json shards = ordered_json::array();
  for (const ShardFile& shard : manifest.shards) shards.push_back(toJson(shard));
  ordered_json object = {{"schema", kManifestSchema},
                         {"dtf_version", manifest.dtf_version},
                         {"created", manifest.created},
                         {"job", manifest.job},
                         {"global_step", manifest.global_step},
                         {"run_seconds", manifest.run_seconds},
                         {"seed", manifest.seed},
                         {"worker_batches", manifest.worker_batches},
                         {"data", manifest.data},
                         {"model_fingerprint", manifest.model_fingerprint},
                         {"optimizer", manifest.optimizer},
                         {"clocks", std::move(clocks)},
                         {"variables", std::move(variables)},
                         {"extra", ordered_json(manifest.extra)},
                         {"shards", std::move(shards)}};
  if (!manifest.stays_in.empty()) object["stays_in"] = manifest.stays_in;
  return object;
}

Manifest manifestFromJson(const json& object) {
  const uint64_t schema = number(object, "schema");
  if (schema != kManifestSchema)
    fail("schema", "is " + std::to_string(schema) + "; this dtf reads " +
                       std::to_string(kManifestSchema) + ": use the version that wrote it");
  Manifest manifest;
  manifest.dtf_version = text(object, "dtf_version");
  manifest.created = text(object, "created");
  manifest.job = text(object, "job");
  manifest.global_step = number(object, "global_step");
  const json& run_seconds = member(object, "run_seconds");
  if (!run_seconds.is_number()) fail("run_seconds", "must be a number");
  manifest.run_seconds = run_seconds.get<double>();
  manifest.seed = number(object, "seed");
  for (const json& batch : list(object, "worker_batches"))
    manifest.worker_batches.push_back(asNumber(batch, "worker_batches"));
  manifest.data = text(object, "data");
  manifest.model_fingerprint = text(object, "model_fingerprint");
  manifest.optimizer = text(object, "optimizer");
  for (const json& clock : list(object, "clocks"))
    manifest.clocks.push_back({number(clock, "applies"), exactNumber(clock, "beta1_power"),
                               exactNumber(clock, "beta2_power")});
  for (const json& variable : list(object, "variables"))
    manifest.variables.push_back(variableFromJson(variable));
  const json& extra = member(object, "extra");
  if (!extra.is_object()) fail("extra", "must be an object");
  for (const auto& [key, value] : extra.items()) {
    if (!value.is_string()) fail("extra", "must hold texts");
    manifest.extra[key] = value.get<std::string>();
  }
  for (const json& shard : list(object, "shards")) manifest.shards.push_back(shardFromJson(shard));
  if (object.contains("stays_in")) manifest.stays_in = text(object, "stays_in");
  return manifest;
}

}  // namespace dtf::checkpoint
