#include "common/model_files/onnx_external.h"

#include <fmt/core.h>

#include <algorithm>

#include "common/base/error.h"
#include "common/base/text.h"

namespace dtf::model_files {

namespace {

constexpr size_t kLocationBytesMax = 1024;

[[noreturn]] void failPlace(const std::string& location, const std::string& why) {
  throw Error(ErrorCode::kBadData,
              printable(fmt::format("its data are in '{}', {}", location.substr(0, 200), why)));
}

bool isBelow(const std::filesystem::path& folder, const std::filesystem::path& file) {
  const auto [end, at] = std::mismatch(folder.begin(), folder.end(), file.begin(), file.end());
  return end == folder.end() && at != file.end();
}

}  // namespace

ExternalData::ExternalData(const std::filesystem::path& model)
    : folder_(model.has_parent_path() ? model.parent_path() : std::filesystem::path(".")) {}

std::string ExternalData::read(const OnnxPlace& place, uint64_t bytes) {
  if (!place.mistake.empty()) failPlace(place.location, "and " + place.mistake);
  if (place.length && *place.length != bytes)
    failPlace(place.location,
              fmt::format("where it has {} bytes; its shape takes {}", *place.length, bytes));
  const std::filesystem::path path = pathOf(place.location);
  if (path != open_path_) open(path);
  const uint64_t held = open_->size();
  if (place.offset > held || bytes > held - place.offset)
    failPlace(place.location, fmt::format("which has {} bytes; the tensor takes {} from {} on",
                                          held, bytes, place.offset));
  uint64_t& left = left_.at(path);
  if (bytes > left)
    failPlace(place.location,
              fmt::format("which has {} bytes; the tensors of the model take more", held));
  left -= bytes;
  std::string data(bytes, '\0');
  if (bytes > 0) open_->read(place.offset, data.data(), data.size());
  return data;
}

void ExternalData::open(const std::filesystem::path& path) {
  open_path_.clear();
  open_ = realFileSystem().open(path);
  open_path_ = path;
  left_.try_emplace(path, open_->size());
}

std::filesystem::path ExternalData::pathOf(const std::string& location) const {
  const std::filesystem::path named(location);
  const bool climbs = std::find(named.begin(), named.end(), "..") != named.end();
  if (location.empty() || location.size() > kLocationBytesMax || named.is_absolute() || climbs ||
      location.find('\0') != std::string::npos)
    failPlace(location, "which is no file in the model's folder: only such files are read");
  std::error_code gone;
  const std::filesystem::path folder = std::filesystem::canonical(folder_, gone);
  const std::filesystem::path path = std::filesystem::canonical(folder / named, gone);
  if (gone)
    failPlace(location, fmt::format("which isn't in {} ({}): copy it there, beside the model",
                                    folder_.string(), gone.message()));
  if (!isBelow(folder, path))
    failPlace(location, "a link to a file outside the model's folder: copy that file in its place");
  return path;
}

}  // namespace dtf::model_files
