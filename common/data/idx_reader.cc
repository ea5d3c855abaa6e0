#include "common/data/idx_reader.h"

#include <fmt/core.h>

#include <array>
#include <limits>
#include <span>
#include <string>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/data/byte_source.h"
#include "common/data/file_kind.h"

namespace dtf::data {

namespace {

constexpr uint8_t kUnsignedByte = 0x08;
constexpr int kImagesRankMin = 3;
constexpr int kImagesRankMax = 4;

[[noreturn]] void failIn(const std::filesystem::path& path, const std::string& why) {
  throw Error(ErrorCode::kBadData, path.string() + ": " + why);
}

[[noreturn]] void failTrailing(const std::filesystem::path& path, const std::string& promised) {
  failIn(path, fmt::format("trailing bytes: the header promises {} bytes, the file holds more",
                           promised));
}

// Returns the shape of one image: height, width, channels.
Shape exampleShape(const std::vector<uint32_t>& dims) {
  DTF_CHECK(dims.size() == kImagesRankMin || dims.size() == kImagesRankMax);
  return Shape{dims[1], dims[2], dims.size() == kImagesRankMax ? dims[3] : 1};
}

// "60000 x 28 x 28 = 47040000"; the product saturates. `bytes` receives it.
std::string product(const std::vector<uint32_t>& dims, uint64_t& bytes) {
  std::string text;
  bytes = 1;
  for (const uint32_t dim : dims) {
    if (__builtin_mul_overflow(bytes, uint64_t{dim}, &bytes))
      bytes = std::numeric_limits<uint64_t>::max();
    text += fmt::format("{}{}", text.empty() ? "" : " x ", dim);
  }
  return dims.size() > 1 ? fmt::format("{} = {}", text, bytes) : text;
}

// "images: unsigned bytes in 3 or 4 dimensions (magic number 00000803 or 00000804)"
std::string wantedText(int rank_min, int rank_max) {
  if (rank_max == 1) return "labels: unsigned bytes in 1 dimension (magic number 00000801)";
  const std::string ranks = rank_min == rank_max ? fmt::format("{}", rank_min)
                                                 : fmt::format("{} or {}", rank_min, rank_max);
  return fmt::format("images: unsigned bytes in {} dimensions (magic number 000008{:02x}{})", ranks,
                     rank_min,
                     rank_min == rank_max ? "" : fmt::format(" or 000008{:02x}", rank_max));
}

std::vector<uint32_t> readHeader(const std::filesystem::path& path, ByteSource& source,
                                 int rank_min, int rank_max) {
  std::array<uint8_t, kKindBytes> first{};
  const size_t got = source.read(first.data(), 4);
  if (got == 0) failIn(path, "the file is empty");
  const int rank = first[3];
  if (got < 4 || first[0] != 0 || first[1] != 0 || first[2] != kUnsignedByte || rank < rank_min ||
      rank > rank_max) {
    const size_t held = got < 4 ? got : 4 + source.read(first.data() + 4, first.size() - 4);
    failIn(path,
           fmt::format("this looks like {}; expected an IDX file of {}",
                       fileKind(std::span(first).first(held)), wantedText(rank_min, rank_max)));
  }
  std::vector<uint32_t> dims;
  for (int i = 0; i < rank; ++i) {
    std::array<uint8_t, 4> b{};
    if (source.read(b.data(), b.size()) < b.size())
      failIn(path, fmt::format("truncated: the file ends in the header, before dimension {} of {}",
                               i + 1, rank));
    dims.push_back(uint32_t{b[0]} << 24 | uint32_t{b[1]} << 16 | uint32_t{b[2]} << 8 | b[3]);
  }
  return dims;
}

// Rejects a header that promises too much before memory is allocated for it.
void checkPromise(const std::filesystem::path& path, const ByteSource& source,
                  const std::string& promised, uint64_t bytes, size_t header_bytes,
                  uint64_t bytes_max) {
  if (bytes > bytes_max)
    failIn(path, fmt::format("too large: the header promises {} bytes, at most {} are read",
                             promised, bytes_max));
  const uint64_t held = source.bytesMax() - std::min<uint64_t>(source.bytesMax(), header_bytes);
  if (bytes > held)
    failIn(path, fmt::format("truncated: the header promises {} bytes, the file {} {}", promised,
                             source.packed() ? "can unpack to at most" : "holds", held));
  if (bytes < held && !source.packed()) failTrailing(path, promised);
}

// Reads the header; the elements are left in `source`.
std::vector<uint32_t> openIdx(const std::filesystem::path& path, ByteSource& source, int rank_min,
                              int rank_max, uint64_t bytes_max) {
  DTF_CHECK(1 <= rank_min && rank_min <= rank_max && rank_max <= 4);
  std::vector<uint32_t> dims = readHeader(path, source, rank_min, rank_max);
  uint64_t bytes = 0;
  const std::string promised = product(dims, bytes);
  checkPromise(path, source, promised, bytes, 4 + 4 * dims.size(), bytes_max);
  return dims;
}

void checkImages(const std::filesystem::path& images, const std::vector<uint32_t>& dims) {
  uint64_t bytes = 0;
  const std::string promised = product(dims, bytes);
  if (bytes == 0) failIn(images, fmt::format("empty: the header promises {} bytes", promised));
}

}  // namespace

IdxImages readIdxImagesHeader(const std::filesystem::path& path) {
  ByteSource source(path);
  const std::vector<uint32_t> dims =
      openIdx(path, source, kImagesRankMin, kImagesRankMax, kIdxBytesMax);
  checkImages(path, dims);
  return {dims[0], exampleShape(dims)};
}

Part readIdxLabels(const std::filesystem::path& path) {
  return {{kLabels, DType::kUInt8, Shape()}, path.string(), std::move(readIdx(path, 1, 1).bytes)};
}

IdxArray readIdx(const std::filesystem::path& path, int rank_min, int rank_max,
                 uint64_t bytes_max) {
  ByteSource source(path);
  IdxArray array;
  array.dims = openIdx(path, source, rank_min, rank_max, bytes_max);
  uint64_t bytes = 0;
  const std::string promised = product(array.dims, bytes);
  if (!source.packed() && bytes > kResidentBytesMax) {
    array.bytes = ByteBlock::ofFile(path, 4 + 4 * array.dims.size(), static_cast<size_t>(bytes));
    return array;
  }
  array.bytes = ByteBlock(static_cast<size_t>(bytes));
  const size_t got = source.read(array.bytes.data(), array.bytes.size());
  if (got < bytes)
    failIn(path, fmt::format("truncated: the header promises {} bytes, the file holds {}", promised,
                             got));
  uint8_t extra = 0;
  if (source.read(&extra, 1) != 0) failTrailing(path, promised);
  return array;
}

std::string countMismatch(const std::filesystem::path& images, int64_t image_count,
                          const std::filesystem::path& labels, int64_t label_count) {
  DTF_CHECK(image_count >= 0 && label_count >= 0);
  if (image_count == label_count) return {};
  return fmt::format("{}: {} labels, but {} holds {} images: the two files don't belong together",
                     labels.string(), label_count, images.string(), image_count);
}

Dataset readIdxDataset(const std::filesystem::path& images, Part labels) {
  IdxArray image_array = readIdx(images, kImagesRankMin, kImagesRankMax);
  const std::string mismatch =
      countMismatch(images, image_array.dims[0], labels.source(), labels.count());
  if (!mismatch.empty()) throw Error(ErrorCode::kBadData, mismatch);
  checkImages(images, image_array.dims);
  return Dataset({{kFeatures, DType::kUInt8, exampleShape(image_array.dims)},
                  images.string(),
                  std::move(image_array.bytes)},
                 std::move(labels));
}

}  // namespace dtf::data
