#include "common/data/npy_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/data/byte_source.h"
#include "common/data/file_kind.h"

namespace dtf::data {

namespace {

constexpr std::string_view kNpyMagic = "\x93NUMPY";
constexpr size_t kNpyTextBytesMax = kNpyHeaderBytesMax - 12;  // behind magic, version and length
constexpr size_t kNpyRankMax = 8;

// The source of an array's bytes.
struct NpyInput {
  std::string name;  // for messages
  std::function<size_t(uint8_t* to, size_t bytes)> read;
  // Maps the bytes in place; nullopt: they must be read.
  std::function<std::optional<ByteBlock>(uint64_t begin, size_t bytes)> map;
  uint64_t bytes_max = 0;  // an upper bound of the bytes
  bool exact = false;      // it is their exact number

  [[noreturn]] void fail(const std::string& why) const {
    throw Error(ErrorCode::kBadData, printable(name + ": " + why));
  }
};

// Reads the dictionary, which Python wrote: {'descr': '<f4', 'fortran_order': False, 'shape': (3,
// 4), }
class DictionaryReader {
 public:
  DictionaryReader(std::string_view text, const NpyInput& input) : text_(text), input_(input) {}

  // See unreadNpyElements().
  std::string unread(std::vector<int64_t>* dims) {
    readAll();
    if (!described_ || elements_) return "";
    if (dims != nullptr && shape_) *dims = *shape_;
    return *described_;
  }

  NpyHeader read() {
    readAll();
    if (!described_ || !shape_ || !has_order_)
      fail("'descr', 'fortran_order' or 'shape' is missing");
    if (!elements_)
      input_.fail(fmt::format("the elements are '{}', and {} are read; {}", *described_,
                              kNpyTypesRead, npyRemedy(*described_)));
    elements_->by_columns = by_columns_;
    return {elements_->type, *shape_, *elements_};
  }

 private:
  void readAll() {
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':');
      readValue(key);
      if (accept('}')) break;
      expect(',');
    }
    skipSpace();
    if (!text_.empty()) fail("something after its '}'");
  }

  [[noreturn]] void fail(const std::string& why) const {
    input_.fail("the header of this .npy can't be read: " + why);
  }
  void skipSpace() {
    text_.remove_prefix(std::min(text_.find_first_not_of(" \t\n"), text_.size()));
  }
  bool accept(char c) {
    skipSpace();
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("'{}' was expected, there is '{}'", c, text_.substr(0, 10)));
  }
  std::string_view quoted() {
    const char quote = accept('"') ? '"' : '\'';
    if (quote == '\'') expect('\'');
    const size_t end = text_.find(quote);
    if (end == std::string_view::npos) fail("a quote is not closed");
    const std::string_view word = text_.substr(0, end);
    text_.remove_prefix(end + 1);
    return word;
  }

  void readValue(std::string_view key) {
    skipSpace();
    if (key == "descr") return readType();
    if (key == "fortran_order") return readOrder();
    if (key == "shape") return readShape();
    fail(fmt::format("unknown key '{}'", key));
  }

  void readType() {
    if (!text_.empty() && text_[0] == '[')
      input_.fail("the array has records of fields: save one array for each part");
    const std::string_view description = quoted();
    described_ = description;
    elements_ = npyElementsOf(description);
  }

  void readOrder() {
    has_order_ = true;
    if (text_.starts_with("False")) return text_.remove_prefix(5);
    by_columns_ = text_.starts_with("True");
    if (by_columns_) return text_.remove_prefix(4);
    fail("fortran_order is neither True nor False");
  }

  void readShape() {
    shape_.emplace();
    expect('(');
    while (!accept(')')) {
      int64_t dim = 0;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), dim);
      if (error != std::errc{} || dim < 0) fail("its shape is no list of sizes");
      text_.remove_prefix(static_cast<size_t>(end - text_.data()));
      shape_->push_back(dim);
      if (shape_->size() > kNpyRankMax)
        input_.fail(fmt::format("the array has more than {} dimensions", kNpyRankMax));
      if (accept(')')) break;
      expect(',');
      skipSpace();
    }
  }

  std::string_view text_;
  const NpyInput& input_;
  std::optional<std::string> described_;  // the elements
  std::optional<NpyElements> elements_;   // none: they aren't read
  std::optional<std::vector<int64_t>> shape_;
  bool has_order_ = false;
  bool by_columns_ = false;
};

void readWhole(const NpyInput& input, uint8_t* to, size_t bytes) {
  if (input.read(to, bytes) < bytes) input.fail("truncated: the file ends in the header");
}

// Returns the bytes of the elements; rejects more than the file can hold.
uint64_t elementBytes(const NpyInput& input, const NpyHeader& header, uint64_t header_bytes) {
  uint64_t bytes = header.elements.bytes();
  bool fits = true;
  for (const int64_t dim : header.dims)
    fits = fits && !__builtin_mul_overflow(bytes, static_cast<uint64_t>(dim), &bytes);
  const uint64_t held = input.bytes_max - std::min(input.bytes_max, header_bytes);
  if (!fits || bytes > held)
    input.fail(fmt::format(
        "truncated: the header promises {} of {}, the file holds at most {} bytes",
        npyTypeName(header.type), fmt::format("[{}]", fmt::join(header.dims, ", ")), held));
  if (input.exact && bytes < held)
    input.fail(
        fmt::format("trailing bytes: the header promises {}, the file holds {}", bytes, held));
  return bytes;
}

struct OpenedNpy {
  NpyHeader header;
  uint64_t begin = 0;  // of the elements, in the file
  uint64_t bytes = 0;  // of the elements, which are read next
};

// Returns the dictionary, and where the elements begin.
std::pair<std::string, uint64_t> readDictionary(const NpyInput& input) {
  std::array<uint8_t, kKindBytes> first{};
  constexpr size_t kBegin = 10;  // magic, version, and the length of versions 1
  const size_t got = input.read(first.data(), kBegin);
  if (got == 0) input.fail("the file is empty");
  if (got < kBegin || std::memcmp(first.data(), kNpyMagic.data(), kNpyMagic.size()) != 0) {
    const size_t held =
        got < kBegin ? got : kBegin + input.read(first.data() + kBegin, first.size() - kBegin);
    input.fail(fmt::format("this looks like {}; expected a NumPy array (.npy)",
                           fileKind(std::span(first).first(held))));
  }
  const uint8_t version = first[6];
  if (version < 1 || version > 3)
    input.fail(fmt::format("version {} of .npy; 1 to 3 are read", version));
  uint64_t length = first[8] | uint64_t{first[9]} << 8;
  uint64_t begin = kBegin;
  if (version > 1) {
    std::array<uint8_t, 2> more{};
    readWhole(input, more.data(), more.size());
    length |= uint64_t{more[0]} << 16 | uint64_t{more[1]} << 24;
    begin += more.size();
  }
  if (length > kNpyTextBytesMax)
    input.fail(
        fmt::format("its header has {} bytes, at most {} are read", length, kNpyTextBytesMax));
  std::string text(length, '\0');
  readWhole(input, reinterpret_cast<uint8_t*>(text.data()), text.size());
  return {std::move(text), begin + length};
}

OpenedNpy openNpy(const NpyInput& input) {
  const auto [text, begin] = readDictionary(input);
  OpenedNpy opened;
  opened.header = DictionaryReader(text, input).read();
  opened.begin = begin;
  opened.bytes = elementBytes(input, opened.header, opened.begin);
  return opened;
}

NpyInput inputOf(ByteSource& source, const std::filesystem::path& path) {
  return {path.string(), [&source](uint8_t* to, size_t bytes) { return source.read(to, bytes); },
          [&source, path](uint64_t begin, size_t bytes) -> std::optional<ByteBlock> {
            if (source.packed() || bytes <= kResidentBytesMax) return std::nullopt;
            return ByteBlock::ofFile(path, begin, bytes);
          },
          source.bytesMax(), !source.packed()};
}

// Reads bytes in memory, the first of `whole_bytes`.
NpyInput inputOf(std::span<const uint8_t> bytes, uint64_t whole_bytes, const std::string& name) {
  const auto read = [bytes, at = size_t{0}](uint8_t* to, size_t wanted) mutable {
    const size_t n = std::min(wanted, bytes.size() - at);
    if (n > 0) std::memcpy(to, bytes.data() + at, n);
    at += n;
    return n;
  };
  const auto map = [](uint64_t, size_t) { return std::optional<ByteBlock>(); };
  return {name, read, map, whole_bytes, true};
}

NpyArray readArray(const NpyInput& input, uint64_t bytes_max) {
  OpenedNpy opened = openNpy(input);
  if (opened.bytes > bytes_max)
    input.fail(fmt::format("too large: {} bytes, at most {} are read", opened.bytes, bytes_max));
  const NpyHeader& header = opened.header;
  const auto normalised = [&](ByteBlock bytes) {
    if (header.elements.isPlain(header.dims.size())) return bytes;
    const ByteBlock& stored = bytes;
    return normalisedElements({stored.data(), stored.size()}, header.elements, header.dims,
                              input.name);
  };
  if (std::optional<ByteBlock> mapped = input.map(opened.begin, opened.bytes)) {
    ByteBlock bytes = normalised(std::move(*mapped));
    return {std::move(opened.header), std::move(bytes)};
  }
  ByteBlock bytes(opened.bytes);
  if (const size_t got = input.read(bytes.data(), opened.bytes); got < opened.bytes)
    input.fail(fmt::format("truncated: {} bytes of elements of {}", got, opened.bytes));
  uint8_t extra = 0;
  if (input.read(&extra, 1) != 0) input.fail("trailing bytes after the elements");
  bytes = normalised(std::move(bytes));
  return {std::move(opened.header), std::move(bytes)};
}

}  // namespace

Shape NpyHeader::exampleShape() const {
  DTF_CHECK(!dims.empty());
  return Shape(std::vector<int64_t>(dims.begin() + 1, dims.end()));
}

NpyHeader readNpyHeader(const std::filesystem::path& path) {
  ByteSource source(path);
  return openNpy(inputOf(source, path)).header;
}

NpyArray readNpy(const std::filesystem::path& path, uint64_t bytes_max) {
  ByteSource source(path);
  return readArray(inputOf(source, path), bytes_max);
}

NpyHeader parseNpyHeader(std::span<const uint8_t> first, uint64_t whole_bytes,
                         const std::string& name) {
  DTF_CHECK(first.size() <= whole_bytes);
  return openNpy(inputOf(first, whole_bytes, name)).header;
}

std::string unreadNpyElements(std::span<const uint8_t> bytes, std::vector<int64_t>* dims) {
  const NpyInput input = inputOf(bytes, bytes.size(), "an array");
  try {
    const auto [text, begin] = readDictionary(input);
    return DictionaryReader(text, input).unread(dims);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kBadData) throw;
    return "";
  }
}

NpyArray parseNpy(std::span<const uint8_t> bytes, const std::string& name, uint64_t bytes_max) {
  return readArray(inputOf(bytes, bytes.size(), name), bytes_max);
}

}  // namespace dtf::data
