#include "launcher/init/job_file.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <system_error>
#include <variant>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/data/byte_source.h"
#include "common/data/file_kind.h"
#include "common/data/image_decoder.h"
#include "common/yaml/error_at.h"
#include "launcher/init/array_job.h"
#include "launcher/init/array_profile.h"
#include "launcher/init/image_profile.h"
#include "launcher/init/libsvm_job.h"
#include "launcher/init/table_job.h"
#include "launcher/init/table_profile.h"

namespace dtf::launcher {

namespace {

namespace fs = std::filesystem;

[[noreturn]] void failData(const fs::path& path, ErrorCode code, const std::string& why) {
  throw yaml::ErrorAt(code, {printable(path.string()), 0, 0}, why);
}

void refuseOption(const fs::path& path, const char* option, bool is_given, const char* use) {
  if (is_given) failData(path, ErrorCode::kUsage, fmt::format("{} is for {}", option, use));
}

// Of a file that is no table either.
[[noreturn]] void failKind(const fs::path& path, const std::string& kind) {
  failData(path, ErrorCode::kBadData,
           fmt::format("this looks like {}. {}", printable(kind), kDataRead));
}

}  // namespace

DatasetProfile profileData(const fs::path& path, const std::optional<std::string>& target,
                           const std::optional<std::string>& features) {
  std::error_code gone;
  if (fs::is_directory(path, gone)) {
    refuseOption(path, "--target", target.has_value(),
                 "tables and arrays: the classes of images are their subfolders");
    refuseOption(path, "--features", features.has_value(), "archives of NumPy (.npz)");
    return profileImages(path);
  }
  std::array<uint8_t, data::kKindBytes> bytes{};
  const std::span<const uint8_t> first =
      std::span(bytes).first(data::ByteSource(path).read(bytes.data(), bytes.size()));
  if (first.empty()) failData(path, ErrorCode::kBadData, "the file is empty");
  const std::string_view begin(reinterpret_cast<const char*>(first.data()), first.size());
  if (begin.starts_with("PK\x03\x04")) return profileArchive(path, target, features);
  refuseOption(path, "--features", features.has_value(), "archives of NumPy (.npz)");
  if (begin.starts_with("\x93NUMPY")) return profileArray(path, target);
  if (data::imageKind(first) != data::ImageKind::kNone)
    failData(path, ErrorCode::kBadData,
             "this is one image: name the folder that has a subfolder for each class");
  if (const std::string kind = data::knownKind(first); !kind.empty()) failKind(path, kind);
  if (begin.find('\0') != begin.npos) failKind(path, data::fileKind(first));
  if (isLibsvm(path)) {
    refuseOption(path, "--target", target.has_value(),
                 "tables and arrays: a line of a libsvm file begins with its label");
    return profileLibsvm(path);
  }
  return profileTable(path, target);
}

JobFile describe(const DatasetProfile& profile, const JobPlace& place, bool divides) {
  JobDraft draft;
  if (const auto* table = std::get_if<TableProfile>(&profile)) draft = tableJob(*table, place);
  if (const auto* arrays = std::get_if<ArraysProfile>(&profile)) draft = arraysJob(*arrays, place);
  if (const auto* images = std::get_if<ImagesProfile>(&profile)) draft = imagesJob(*images, place);
  if (const auto* libsvm = std::get_if<LibsvmProfile>(&profile)) draft = libsvmJob(*libsvm, place);
  DTF_CHECK(!draft.model.empty() && !draft.data.empty());
  if (!divides) trainOnAll(draft);
  return {jobText(draft, place), draft.findings, nextCommands(draft, place)};
}

}  // namespace dtf::launcher
