#include "common/checkpoint/manifest_json.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "common/base/check.h"
#include "common/base/checksum.h"
#include "common/base/error.h"

namespace dtf::checkpoint {

namespace {

[[noreturn]] void fail(const std::string& key, const std::string& why) {
  throw Error(ErrorCode::kBadData, "'" + key + "' " + why);
}

std::string exactText(double value) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%a", value);
  return buffer;
}

double exactNumber(const Json& object, const std::string& key) {
  const std::string& digits = object.stringAt(key);
  char* end = nullptr;
  const double value = std::strtod(digits.c_str(), &end);
  // Accepts only the output of exactText(): strtod() also takes "0.9", " 1" and "inf".
  if (!std::isfinite(value) || exactText(value) != digits)
    fail(key, "must be a number in hexadecimal floating point, as 0x1.8p-1");
  return value;
}

Json toJson(const ShardFile& shard) {
  Json tensors = Json::array();
  for (const StoredPart& part : shard.parts)
    tensors.push_back({{"name", part.name},
                       {"begin", part.begin},
                       {"count", part.count},
                       {"offset", part.offset},
                       {"checksum", hexOf(part.checksum)}});
  Json object = {{"file", shard.file},
                 {"bytes", shard.bytes},
                 {"checksum", hexOf(shard.checksum)},
                 {"tensors", std::move(tensors)}};
  if (!shard.host.empty()) object["host"] = shard.host;
  return object;
}

ShardFile shardFromJson(const Json& object) {
  ShardFile shard;
  shard.file = object.stringAt("file");
  shard.bytes = object.uint64At("bytes");
  shard.checksum = fromHex(object.stringAt("checksum"));
  if (object.contains("host")) shard.host = object.stringAt("host");
  for (const Json& part : object.arrayAt("tensors"))
    shard.parts.push_back({part.stringAt("name"), part.uint64At("begin"), part.uint64At("count"),
                           part.uint64At("offset"), fromHex(part.stringAt("checksum"))});
  return shard;
}

VariableInfo variableFromJson(const Json& object) {
  VariableInfo variable;
  variable.name = object.stringAt("name");
  std::vector<int64_t> dims;
  for (const Json& dim : object.arrayAt("shape")) {
    dims.push_back(static_cast<int64_t>(dim.asUint64()));
    if (dims.back() < 0) fail("shape", "of " + variable.name + " has a dimension beyond 2^63");
  }
  variable.shape = Shape(std::move(dims));
  variable.slots = object.arrayAt("slots").asStrings();
  return variable;
}

}  // namespace

Json manifestToJson(const Manifest& manifest) {
  DTF_CHECK(std::isfinite(manifest.run_seconds));  // JSON would write null
  Json clocks = Json::array();
  for (const ClockState& clock : manifest.clocks)
    clocks.push_back({{"applies", clock.applies},
                      {"beta1_power", exactText(clock.beta1_power)},
                      {"beta2_power", exactText(clock.beta2_power)}});
  Json variables = Json::array();
  for (const VariableInfo& variable : manifest.variables)
    variables.push_back(
        {{"name", variable.name}, {"shape", variable.shape.dims()}, {"slots", variable.slots}});
  Json shards = Json::array();
  for (const ShardFile& shard : manifest.shards) shards.push_back(toJson(shard));
  Json object = {{"schema", kManifestSchema},
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
                 {"extra", Json(manifest.extra)},
                 {"shards", std::move(shards)}};
  if (!manifest.stays_in.empty()) object["stays_in"] = manifest.stays_in;
  return object;
}

Manifest manifestFromJson(const Json& object) {
  const uint64_t schema = object.uint64At("schema");
  if (schema != kManifestSchema)
    fail("schema", "is " + std::to_string(schema) + "; this dtf reads " +
                       std::to_string(kManifestSchema) + ": use the version that wrote it");
  Manifest manifest;
  manifest.dtf_version = object.stringAt("dtf_version");
  manifest.created = object.stringAt("created");
  manifest.job = object.stringAt("job");
  manifest.global_step = object.uint64At("global_step");
  manifest.run_seconds = object.doubleAt("run_seconds");
  manifest.seed = object.uint64At("seed");
  for (const Json& batch : object.arrayAt("worker_batches"))
    manifest.worker_batches.push_back(batch.asUint64());
  manifest.data = object.stringAt("data");
  manifest.model_fingerprint = object.stringAt("model_fingerprint");
  manifest.optimizer = object.stringAt("optimizer");
  for (const Json& clock : object.arrayAt("clocks"))
    manifest.clocks.push_back({clock.uint64At("applies"), exactNumber(clock, "beta1_power"),
                               exactNumber(clock, "beta2_power")});
  for (const Json& variable : object.arrayAt("variables"))
    manifest.variables.push_back(variableFromJson(variable));
  for (const auto& [key, value] : object.objectAt("extra").members())
    manifest.extra[key] = value.asString();
  for (const Json& shard : object.arrayAt("shards"))
    manifest.shards.push_back(shardFromJson(shard));
  if (object.contains("stays_in")) manifest.stays_in = object.stringAt("stays_in");
  return manifest;
}

}  // namespace dtf::checkpoint
