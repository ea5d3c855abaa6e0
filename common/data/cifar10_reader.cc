#include "common/data/cifar10_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/data/byte_source.h"

namespace dtf::data {

namespace {

constexpr size_t kPlaneBytes = kCifar10Side * kCifar10Side;
constexpr size_t kImageBytes = kPlaneBytes * kCifar10Channels;
constexpr size_t kRecordBytes = 1 + kImageBytes;
using Record = std::array<uint8_t, kRecordBytes>;

[[noreturn]] void failAtRecord(const std::filesystem::path& path, const std::string& why) {
  throw Error(ErrorCode::kBadData, path.string() + ": " + why);
}

// False at the end of the file. `index` is the record's, for the message.
bool readRecord(ByteSource& source, const std::filesystem::path& path, int64_t index,
                Record& record) {
  const size_t bytes = source.read(record.data(), record.size());
  if (bytes == 0 && index == 0) failAtRecord(path, "the file is empty");
  if (bytes == 0) return false;
  if (bytes < record.size())
    failAtRecord(path,
                 fmt::format("record {} has {} bytes, one of CIFAR-10 has {}: the file is cut off, "
                             "or of another kind",
                             index, bytes, kRecordBytes));
  return true;
}

// Planes to pixels.
void appendImage(const Record& record, std::vector<uint8_t>& images) {
  const uint8_t* const planes = record.data() + 1;
  for (size_t pixel = 0; pixel < kPlaneBytes; ++pixel)
    for (size_t channel = 0; channel < kCifar10Channels; ++channel)
      images.push_back(planes[channel * kPlaneBytes + pixel]);
}

ByteBlock blockOf(const std::vector<uint8_t>& bytes) {
  ByteBlock block(bytes.size());
  std::copy(bytes.begin(), bytes.end(), block.data());
  return block;
}

}  // namespace

int64_t readCifar10Count(const std::filesystem::path& path) {
  ByteSource source(path);
  if (!source.packed() && source.bytesMax() > 0 && source.bytesMax() % kRecordBytes == 0)
    return static_cast<int64_t>(source.bytesMax() / kRecordBytes);
  Record record;
  int64_t count = 0;
  while (readRecord(source, path, count, record)) ++count;
  return count;
}

Dataset readCifar10(std::span<const std::filesystem::path> files) {
  DTF_CHECK(!files.empty());
  std::vector<uint8_t> images, labels;
  std::string names;
  Record record;
  for (const std::filesystem::path& path : files) {
    names += (names.empty() ? "" : ", ") + path.string();
    ByteSource source(path);
    for (int64_t index = 0; readRecord(source, path, index, record); ++index) {
      if (record[0] >= kCifar10Classes)
        failAtRecord(path, fmt::format("record {} has label {}, those of CIFAR-10 are 0 to {}",
                                       index, record[0], kCifar10Classes - 1));
      if (images.size() + kImageBytes > kCifar10BytesMax)
        failAtRecord(path, fmt::format("the files hold more than {} bytes", kCifar10BytesMax));
      labels.push_back(record[0]);
      appendImage(record, images);
    }
  }
  return {{names, names},
          Shape{kCifar10Side, kCifar10Side, kCifar10Channels},
          blockOf(images),
          blockOf(labels)};
}

}  // namespace dtf::data
