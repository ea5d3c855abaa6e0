#pragma once

// Makes valid and damaged IDX files for the tests of this folder, and finds the real MNIST.

#include <gtest/gtest.h>
#include <zlib.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/check.h"
#include "common/base/error.h"

namespace dtf::data {

// A new folder; the destructor removes it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "dtf-data-XXXXXX").string();
    DTF_CHECK(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path write(std::string_view name, std::string_view bytes) const {
    const std::filesystem::path path = path_ / name;
    std::ofstream(path, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return path;
  }

 private:
  std::filesystem::path path_;
};

// Returns the message of the dtf::Error of `code` that `action` throws, without the folder; empty:
// it throws none.
template <class Action>
std::string mistakeOf(const Action& action, ErrorCode code, const TemporaryFolder& folder) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.message();
    std::string message = error.message();
    const std::string path = folder.path().string() + "/";
    for (size_t at; (at = message.find(path)) != std::string::npos;) message.erase(at, path.size());
    return message;
  }
  return "";
}

inline std::string idxHeader(uint32_t magic, const std::vector<uint32_t>& dims) {
  std::string bytes;
  const auto put = [&bytes](uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(value >> shift));
  };
  put(magic);
  for (const uint32_t dim : dims) put(dim);
  return bytes;
}

inline constexpr uint32_t kImagesMagic = 0x803;
inline constexpr uint32_t kLabelsMagic = 0x801;

// Returns `bytes` in gzip's format.
inline std::string gzipped(std::string_view bytes) {
  z_stream stream{};
  DTF_CHECK(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  DTF_CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

// Returns the folder of the real MNIST files: DTF_MNIST_DIR, data/mnist or shared/data/mnist in
// `source_root` or a folder above it. nullopt: there is none.
inline std::optional<std::filesystem::path> findMnist(const std::filesystem::path& source_root) {
  namespace fs = std::filesystem;
  const auto holds = [](const fs::path& folder) {
    std::error_code ignored;
    return fs::is_regular_file(folder / "train-images-idx3-ubyte.gz", ignored);
  };
  if (const char* given = std::getenv("DTF_MNIST_DIR"); given != nullptr && holds(given))
    return given;
  for (fs::path at = source_root;; at = at.parent_path()) {
    for (const char* below : {"data/mnist", "shared/data/mnist"})
      if (holds(at / below)) return at / below;
    if (at == at.parent_path()) return std::nullopt;
  }
}

}  // namespace dtf::data
