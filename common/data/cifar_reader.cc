#include "common/data/cifar_reader.h"

#include <fmt/core.h>

#include <algorithm>
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

constexpr size_t kPlaneBytes = kCifarSide * kCifarSide;
constexpr size_t kImageBytes = kPlaneBytes * kCifarChannels;
constexpr size_t kLabelBytesMax = 2;
constexpr std::array<size_t, 2> kRecordBytes = {1 + kImageBytes, 2 + kImageBytes};

// Of either data set: its labels, then its image.
struct Record {
  std::array<uint8_t, kLabelBytesMax + kImageBytes> bytes{};
};

[[noreturn]] void failAtRecord(const std::filesystem::path& path, const std::string& why) {
  throw Error(ErrorCode::kBadData, path.string() + ": " + why);
}

uint64_t bytesHeld(const std::filesystem::path& path) {
  ByteSource source(path);
  Record record;
  uint64_t all = 0;
  for (size_t bytes = 1; bytes > 0 && all <= kCifarBytesMax; all += bytes)
    bytes = source.read(record.bytes.data(), record.bytes.size());
  return all;
}

// Rejects a file if its record `index`, with these first bytes, isn't one of the data set.
[[noreturn]] void failAsOtherKind(const std::filesystem::path& path, const CifarLabels& labels,
                                  int64_t index, std::span<const uint8_t> begin,
                                  const std::string& why) {
  const std::string expected = fmt::format("expected the binary version of {}", labels.dataset);
  const std::string kind = index == 0 ? knownKind(begin) : "";
  if (!kind.empty()) failAtRecord(path, fmt::format("this looks like {}; {}", kind, expected));
  const uint64_t bytes = bytesHeld(path);
  const bool of_10 = labels.bytes == 1;
  const size_t other = kRecordBytes[of_10 ? 1 : 0];
  if (bytes % other == 0 && bytes % kRecordBytes[of_10 ? 0 : 1] != 0)
    failAtRecord(path, fmt::format("this looks like {} records of {}, of {} bytes each; {}. Say "
                                   "format: {}",
                                   bytes / other, of_10 ? "CIFAR-100" : "CIFAR-10", other, expected,
                                   of_10 ? "cifar100" : "cifar10"));
  failAtRecord(path, why);
}

// Reads a record; returns false at the end of the file. `index` is for messages.
bool readRecord(ByteSource& source, const std::filesystem::path& path, const CifarLabels& labels,
                int64_t index, Record& record) {
  const size_t whole = labels.bytes + kImageBytes;
  const size_t bytes = source.read(record.bytes.data(), whole);
  if (bytes == 0 && index == 0) failAtRecord(path, "the file is empty");
  if (bytes == 0) return false;
  const auto begin = std::span<const uint8_t>(record.bytes).first(bytes);
  if (bytes < whole)
    failAsOtherKind(path, labels, index, begin,
                    fmt::format("record {} has {} bytes, one of {} has {}: the file is cut off, or "
                                "of another kind",
                                index, bytes, labels.dataset, whole));
  for (size_t label = 0; label < labels.bytes; ++label)
    if (record.bytes[label] >= labels.classes[label])
      failAsOtherKind(path, labels, index, begin,
                      fmt::format("record {} has label {}; {} has 0 to {}", index,
                                  record.bytes[label], labels.dataset, labels.classes[label] - 1));
  return true;
}

// Turns planes into pixels.
void writeImage(const uint8_t* planes, uint8_t* image) {
  for (size_t pixel = 0; pixel < kPlaneBytes; ++pixel)
    for (size_t channel = 0; channel < kCifarChannels; ++channel)
      *image++ = planes[channel * kPlaneBytes + pixel];
}

}  // namespace

CifarLabels cifarLabels(const cluster::DatasetSpec& spec) {
  using Format = cluster::DatasetSpec::Format;
  DTF_CHECK(spec.format == Format::kCifar10 || spec.format == Format::kCifar100);
  if (spec.format == Format::kCifar10) return {};
  const bool fine = spec.label_mode == cluster::LabelMode::kFine;
  return {"CIFAR-100", 2, fine ? size_t{1} : size_t{0}, {20, 100}};
}

int64_t readCifarCount(const std::filesystem::path& path, const CifarLabels& labels) {
  ByteSource source(path);
  Record record;
  int64_t count = 0;
  while (readRecord(source, path, labels, count, record)) {
    ++count;
    if (static_cast<uint64_t>(count) * kImageBytes > kCifarBytesMax)
      failAtRecord(path, fmt::format("the file holds more than {} bytes", kCifarBytesMax));
  }
  return count;
}

Dataset readCifar(std::span<const std::filesystem::path> files, const CifarLabels& labels) {
  DTF_CHECK(!files.empty());
  std::vector<int64_t> counts;
  size_t total = 0;
  std::string names;
  for (const std::filesystem::path& path : files) {
    names += (names.empty() ? "" : ", ") + path.string();
    counts.push_back(readCifarCount(path, labels));
    total += static_cast<size_t>(counts.back());
    if (total * kImageBytes > kCifarBytesMax)
      failAtRecord(
          path, fmt::format("with those before it, it holds more than {} bytes", kCifarBytesMax));
  }
  ByteBlock images(total * kImageBytes), classes(total);
  size_t at = 0;
  for (size_t file = 0; file < files.size(); ++file) {
    ByteSource source(files[file]);
    Record record;
    for (int64_t index = 0; index < counts[file]; ++index, ++at) {
      if (!readRecord(source, files[file], labels, index, record))
        failAtRecord(files[file], "the file became shorter while it was read");
      classes.data()[at] = record.bytes[labels.at];
      writeImage(record.bytes.data() + labels.bytes, images.data() + at * kImageBytes);
    }
  }
  DTF_CHECK(at == total);
  return {{{kFeatures, DType::kUInt8, cifarImage()}, names, std::move(images)},
          {{kLabels, DType::kUInt8, Shape()}, names, std::move(classes)}};
}

}  // namespace dtf::data
