#include "common/data/idx_reader.h"

#include <fmt/core.h>

#include <array>
#include <limits>
#include <string>

#include "common/base/error.h"
#include "common/data/byte_source.h"

namespace dtf::data {

namespace {

constexpr uint8_t kUnsignedByte = 0x08;

[[noreturn]] void failIn(const std::filesystem::path& path, const std::string& why) {
  throw Error(ErrorCode::kBadData, path.string() + ": " + why);
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

std::vector<uint32_t> readHeader(const std::filesystem::path& path, ByteSource& source,
                                 int rank_min, int rank_max) {
  std::array<uint8_t, 4> magic{};
  const size_t got = source.read(magic.data(), magic.size());
  if (got < magic.size())
    failIn(path,
           fmt::format(
               "truncated: an IDX file begins with a magic number of 4 bytes, the file holds {}",
               got));
  const int rank = magic[3];
  if (magic[0] != 0 || magic[1] != 0 || magic[2] != kUnsignedByte || rank < rank_min ||
      rank > rank_max) {
    const std::string allowed = rank_min == rank_max
                                    ? fmt::format("0000080{:x}", rank_min)
                                    : fmt::format("0000080{:x} to 0000080{:x}", rank_min, rank_max);
    failIn(path, fmt::format(
                     "wrong magic number: expected {} (IDX, unsigned bytes, {} dimension{}), found "
                     "{:02x}{:02x}{:02x}{:02x}",
                     allowed, rank_min, rank_min == 1 ? "" : "s or more", magic[0], magic[1],
                     magic[2], magic[3]));
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

// Refuses a header before memory is taken for what it promises.
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
}

}  // namespace

IdxArray readIdx(const std::filesystem::path& path, int rank_min, int rank_max,
                 uint64_t bytes_max) {
  ByteSource source(path);
  IdxArray array;
  array.dims = readHeader(path, source, rank_min, rank_max);
  uint64_t bytes = 0;
  const std::string promised = product(array.dims, bytes);
  checkPromise(path, source, promised, bytes, 4 + 4 * array.dims.size(), bytes_max);
  array.bytes = ByteBlock(static_cast<size_t>(bytes));
  const size_t got = source.read(array.bytes.data(), array.bytes.size());
  if (got < bytes)
    failIn(path, fmt::format("truncated: the header promises {} bytes, the file holds {}", promised,
                             got));
  uint8_t extra = 0;
  if (source.read(&extra, 1) != 0)
    failIn(path, fmt::format("trailing bytes: the header promises {} bytes, the file holds more",
                             promised));
  return array;
}

Dataset readIdxDataset(const std::filesystem::path& images, const std::filesystem::path& labels) {
  IdxArray label_array = readIdx(labels, 1, 1);
  IdxArray image_array = readIdx(images, 3, 4);
  const std::vector<uint32_t>& dims = image_array.dims;
  if (dims[0] != label_array.dims[0])
    failIn(labels,
           fmt::format("{} labels, but {} holds {} images: the two files don't belong together",
                       label_array.dims[0], images.string(), dims[0]));
  uint64_t bytes = 0;
  const std::string promised = product(dims, bytes);
  if (bytes == 0) failIn(images, fmt::format("empty: the header promises {} bytes", promised));
  const int64_t channels = dims.size() == 4 ? dims[3] : 1;
  return Dataset(labels.string(), Shape{dims[1], dims[2], channels}, std::move(image_array.bytes),
                 std::move(label_array.bytes));
}

}  // namespace dtf::data
