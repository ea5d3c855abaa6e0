#include "launcher/ssh/model_files.h"

#include <algorithm>
#include <cctype>

#include "common/base/error.h"
#include "common/base/text.h"
#include "common/checkpoint/shard_file.h"
#include "common/train/kernel_choices.h"

namespace dtf::launcher {

namespace {

constexpr std::string_view kCheckpoints = "checkpoints";
constexpr std::string_view kShards = "shards";
constexpr std::string_view kStep = "step-";

bool isStep(std::string_view folder) {
  constexpr size_t kDigitsMax = 20;
  const std::string_view digits =
      folder.starts_with(kStep) ? folder.substr(kStep.size()) : std::string_view();
  return !digits.empty() && digits.size() <= kDigitsMax &&
         std::all_of(digits.begin(), digits.end(), [](unsigned char c) { return std::isdigit(c); });
}

std::string stepName(uint64_t step) {
  return std::string(kCheckpoints) + "/" + std::string(kStep) + std::to_string(step) + "/";
}

}  // namespace

std::string manifestName(uint64_t step) {
  return stepName(step) + checkpoint::kManifestFile;
}

std::string shardName(uint64_t step, const std::string& file) {
  return stepName(step) + file;
}

std::string stayingShardName(const std::string& stays_in, const std::string& file) {
  return std::string(kShards) + "/" + stays_in + "/" + file;
}

std::string kernelsName() {
  return std::string(train::kKernelsFile);
}

bool isModelFile(std::string_view name) {
  if (name == train::kKernelsFile) return true;
  const std::vector<std::string> parts = split(name, '/');
  if (parts.size() != 3 || !checkpoint::isPlainName(parts[2])) return false;
  return (parts[0] == kCheckpoints && isStep(parts[1])) ||
         (parts[0] == kShards && checkpoint::isPlainName(parts[1]));
}

bool isManifest(std::string_view name) {
  return isModelFile(name) && name.ends_with(std::string("/") + checkpoint::kManifestFile);
}

std::unique_ptr<ModelFileReader> ModelFileReader::open(FileSystem& file_system,
                                                       const std::filesystem::path& run_dir,
                                                       const std::string& name) {
  if (!isModelFile(name))
    throw Error(ErrorCode::kBadData, "'" + printable(name) + "' is not a file of a model");
  const std::filesystem::path path = run_dir / name;
  if (!file_system.exists(path)) return nullptr;
  return std::unique_ptr<ModelFileReader>(new ModelFileReader(file_system.open(path)));
}

std::string ModelFileReader::next(size_t bytes_max) {
  std::string piece(std::min<uint64_t>(bytes() - given_, bytes_max), '\0');
  if (!piece.empty()) file_->read(given_, piece.data(), piece.size());
  given_ += piece.size();
  return piece;
}

}  // namespace dtf::launcher
