#include "common/model_files/weight_files.h"

#include "common/base/check.h"
#include "common/base/json.h"
#include "common/checkpoint/safetensors.h"
#include "common/model_files/npy.h"
#include "common/model_files/zip_writer.h"

namespace dtf::model_files {

namespace {

std::string_view bytesOf(const Tensor& tensor) {
  DTF_CHECK(tensor.dtype() == DType::kFloat32);
  return {reinterpret_cast<const char*>(tensor.data()), tensor.bytes()};
}

}  // namespace

std::string encodeSafetensors(const TrainedModel& trained) {
  std::vector<checkpoint::SafetensorsEntry> entries;
  uint64_t at = 0;
  for (const NamedTensor& variable : trained.variables) {
    const std::vector<int64_t>& dims = variable.value.shape().dims();
    const uint64_t end = at + variable.value.bytes();
    entries.push_back({variable.name, "F32", {dims.begin(), dims.end()}, at, end});
    at = end;
  }
  std::string file = checkpoint::encodeSafetensorsHeader(entries, metadataOf(trained));
  file.reserve(file.size() + at);
  for (const NamedTensor& variable : trained.variables) file += bytesOf(variable.value);
  return file;
}

std::string encodeNpz(const TrainedModel& trained) {
  ZipWriter zip;
  for (const NamedTensor& variable : trained.variables)
    zip.add(variable.name + ".npy", npyHeader(DType::kFloat32, variable.value.shape()),
            bytesOf(variable.value));
  zip.add("metadata.json", Json(metadataOf(trained)).dump(2), "");
  return zip.finish();
}

}  // namespace dtf::model_files
