#include "common/data/cifar10_reader.h"

#include <fmt/core.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/data/byte_source.h"
#include "common/data/file_kind.h"

namespace dtf::data {

namespace {

constexpr size_t kPlaneBytes = kCifar10Side * kCifar10Side;
constexpr size_t kImageBytes = kPlaneBytes * kCifar10Channels;
constexpr size_t kRecordBytes = 1 + kImageBytes;
constexpr size_t kCifar100RecordBytes = 2 + kImageBytes;  // a label of 20, and one of 100
using Record = std::array<uint8_t, kRecordBytes>;

[[noreturn]] void failAtRecord(const std::filesystem::path& path, const std::string& why) {
  throw Error(ErrorCode::kBadData, path.string() + ": " + why);
}

uint64_t bytesHeld(const std::filesystem::path& path) {
  ByteSource source(path);
  Record record;
  uint64_t all = 0;
  for (size_t bytes = 1; bytes > 0 && all <= kCifar10BytesMax; all += bytes)
    bytes = source.read(record.data(), record.size());
  return all;
}

// Rejects a file if its record `index`, with these first bytes, isn't one of CIFAR-10.
[[noreturn]] void failAsOtherKind(const std::filesystem::path& path, int64_t index,
                                  std::span<const uint8_t> begin, const std::string& why) {
  constexpr std::string_view kExpected = "expected the binary version of CIFAR-10";
  const std::string kind = index == 0 ? knownKind(begin) : "";
  if (!kind.empty()) failAtRecord(path, fmt::format("this looks like {}; {}", kind, kExpected));
  const uint64_t bytes = bytesHeld(path);
  if (bytes % kCifar100RecordBytes == 0)
    failAtRecord(path, fmt::format("this looks like {} records of CIFAR-100, of {} bytes each; {}. "
                                   "Save its images and labels as arrays (format: npy)",
                                   bytes / kCifar100RecordBytes, kCifar100RecordBytes, kExpected));
  failAtRecord(path, why);
}

// Reads a record; returns false at the end of the file. `index` is for messages.
bool readRecord(ByteSource& source, const std::filesystem::path& path, int64_t index,
                Record& record) {
  const size_t bytes = source.read(record.data(), record.size());
  if (bytes == 0 && index == 0) failAtRecord(path, "the file is empty");
  if (bytes == 0) return false;
  if (bytes < record.size())
    failAsOtherKind(path, index, std::span(record).first(bytes),
                    fmt::format("record {} has {} bytes, one of CIFAR-10 has {}: the file is cut "
                                "off, or of another kind",
                                index, bytes, kRecordBytes));
  if (record[0] >= kCifar10Classes)
    failAsOtherKind(path, index, record,
                    fmt::format("record {} has label {}; CIFAR-10 has 0 to {}", index, record[0],
                                kCifar10Classes - 1));
  return true;
}

// Turns planes into pixels.
void writeImage(const Record& record, uint8_t* image) {
  const uint8_t* const planes = record.data() + 1;
  for (size_t pixel = 0; pixel < kPlaneBytes; ++pixel)
    for (size_t channel = 0; channel < kCifar10Channels; ++channel)
      *image++ = planes[channel * kPlaneBytes + pixel];
}

}  // namespace

int64_t readCifar10Count(const std::filesystem::path& path) {
  ByteSource source(path);
  Record record;
  int64_t count = 0;
  while (readRecord(source, path, count, record)) {
    ++count;
    if (static_cast<uint64_t>(count) * kImageBytes > kCifar10BytesMax)
      failAtRecord(path, fmt::format("the file holds more than {} bytes", kCifar10BytesMax));
  }
  return count;
}

Dataset readCifar10(std::span<const std::filesystem::path> files) {
  DTF_CHECK(!files.empty());
  std::vector<int64_t> counts;
  size_t total = 0;
  std::string names;
  for (const std::filesystem::path& path : files) {
    names += (names.empty() ? "" : ", ") + path.string();
    counts.push_back(readCifar10Count(path));
    total += static_cast<size_t>(counts.back());
    if (total * kImageBytes > kCifar10BytesMax)
      failAtRecord(
          path, fmt::format("with those before it, it holds more than {} bytes", kCifar10BytesMax));
  }
  ByteBlock images(total * kImageBytes), labels(total);
  size_t at = 0;
  for (size_t file = 0; file < files.size(); ++file) {
    ByteSource source(files[file]);
    Record record;
    for (int64_t index = 0; index < counts[file]; ++index, ++at) {
      if (!readRecord(source, files[file], index, record))
        failAtRecord(files[file], "the file became shorter while it was read");
      labels.data()[at] = record[0];
      writeImage(record, images.data() + at * kImageBytes);
    }
  }
  DTF_CHECK(at == total);
  const Shape image{kCifar10Side, kCifar10Side, kCifar10Channels};
  return {{{kFeatures, DType::kUInt8, image}, names, std::move(images)},
          {{kLabels, DType::kUInt8, Shape()}, names, std::move(labels)}};
}

}  // namespace dtf::data
