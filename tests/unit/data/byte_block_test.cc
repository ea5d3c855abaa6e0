#include "common/data/byte_block.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <string>

#include "common/base/error.h"
#include "common/data/batch_order.h"
#include "common/data/csv_reader.h"
#include "common/data/idx_reader.h"
#include "common/data/image_folder.h"
#include "common/data/npy_dataset.h"
#include "tests/support/sanitizer.h"
#include "tests/unit/data/idx_files.h"
#include "tests/unit/data/image_files.h"
#include "tests/unit/data/npy_files.h"

namespace dtf::data {
namespace {

// Returns the bytes of this process's memory that no file backs: the kernel can't simply drop them.
int64_t anonymousBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("RssAnon:")) return std::stoll(line.substr(8)) * 1024;
  ADD_FAILURE() << "/proc/self/status has no RssAnon";
  return 0;
}

// Expects less than 64 MiB more than `before`, for data of `bytes`.
void expectLittleSince([[maybe_unused]] int64_t before, [[maybe_unused]] uint64_t bytes) {
#ifndef DTF_SANITIZER_MALLOC  // a sanitizer keeps freed memory for a while
  EXPECT_LT(anonymousBytes() - before, int64_t{64} << 20) << "of " << bytes;
#endif
}

// A file of `bytes` bytes after `header`; most of them are holes, which read as zeros and take no
// room.
std::filesystem::path sparse(const TemporaryFolder& folder, const std::string& name,
                             const std::string& header, uint64_t bytes) {
  const std::filesystem::path path = folder.write(name, header);
  std::filesystem::resize_file(path, header.size() + bytes);
  return path;
}

void patch(const std::filesystem::path& path, uint64_t at, const std::string& bytes) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(at));
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

TEST(ByteBlock, FewAreInMemoryAndManyOnTheDisk) {
  ByteBlock few(1000, 1000);
  EXPECT_FALSE(few.onDisk());
  ByteBlock many(100'000, 1000);
  EXPECT_TRUE(many.onDisk());
  for (ByteBlock* block : {&few, &many}) {
    std::memset(block->data(), 7, block->size());
    EXPECT_EQ(block->data()[block->size() - 1], 7);
    block->shrinkTo(10);
    EXPECT_EQ(block->size(), 10u);
    const ByteBlock moved = std::move(*block);
    EXPECT_EQ(moved.data()[9], 7);
  }
}

TEST(ByteBlock, AFileIsReadWhereItIs) {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 3000; ++i) text += "0123456789";
  const std::filesystem::path file = folder.write("f", text);
  const ByteBlock block = ByteBlock::ofFile(file, 4099, 25'000);
  EXPECT_TRUE(block.onDisk());
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(block.data()), block.size()),
            text.substr(4099, 25'000));
  EXPECT_THROW(ByteBlock::ofFile(file, 4099, 26'000), Error);
  EXPECT_THROW(ByteBlock::ofFile(folder.path() / "missing", 0, 1), Error);
}

TEST(ByteBlock, AFolderWithoutRoomIsNamed) {
  const char* const before = std::getenv("TMPDIR");
  const std::string kept = before != nullptr ? before : "";
  ::setenv("TMPDIR", "/nowhere", 1);
  try {
    const ByteBlock block(2000, 1000);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCannotWrite);
    EXPECT_EQ(error.message(),
              "cannot keep 2.0 KiB of examples in a file in /nowhere: No such file or directory "
              "(2): set TMPDIR to a folder on a disk with that much room");
  }
  before != nullptr ? ::setenv("TMPDIR", kept.c_str(), 1) : ::unsetenv("TMPDIR");
}

// Its batches are the file's own bytes.
TEST(LargeData, ALargeIdxFileTakesNoMemory) {
  const TemporaryFolder folder;
  constexpr uint32_t kCount = 400'000;
  constexpr uint64_t kImageBytes = 28 * 28;
  const std::filesystem::path images =
      sparse(folder, "images", idxHeader(kImagesMagic, {kCount, 28, 28}), kCount * kImageBytes);
  for (uint32_t i = 0; i < kCount; i += 10'000)
    patch(images, 16 + i * kImageBytes,
          std::string(kImageBytes, static_cast<char>(1 + i / 10'000)));
  const std::filesystem::path labels =
      sparse(folder, "labels", idxHeader(kLabelsMagic, {kCount}), kCount);
  const int64_t before = anonymousBytes();
  const auto dataset =
      std::make_shared<const Dataset>(readIdxDataset(images, readIdxLabels(labels)));
  EXPECT_TRUE(dataset->onDisk());
  BatchReader reader(dataset, 1000, 1);
  Batch batch(dataset->parts(), 1000);
  int found = 0;
  for (uint64_t step = 0; step < kCount / 1000; ++step) {
    reader.read(step, batch);
    const std::span<const uint32_t> order = reader.examples(step);
    const auto* pixels = reinterpret_cast<const uint8_t*>(batch.parts[0].data());
    for (size_t i = 0; i < order.size(); ++i) {
      const uint8_t wanted =
          order[i] % 10'000 == 0 ? static_cast<uint8_t>(1 + order[i] / 10'000) : uint8_t{0};
      ASSERT_EQ(pixels[i * kImageBytes], wanted) << order[i];
      ASSERT_EQ(pixels[(i + 1) * kImageBytes - 1], wanted) << order[i];
      found += wanted != 0;
    }
  }
  EXPECT_EQ(found, 40);
  expectLittleSince(before, kCount * kImageBytes);
}

TEST(LargeData, ALargeArrayTakesNoMemory) {
  const TemporaryFolder folder;
  constexpr uint64_t kRows = 700'000;
  constexpr uint64_t kRowBytes = 100 * sizeof(float);
  const std::string header = npyOf<float>("<f4", "(700000, 100)", {});
  cluster::DatasetSpec spec;
  spec.format = cluster::DatasetSpec::Format::kNpy;
  spec.npy.features = {sparse(folder, "x.npy", header, kRows * kRowBytes), {}};
  spec.npy.labels = {sparse(folder, "y.npy", npyOf<uint8_t>("|u1", "(700000,)", {}), kRows), {}};
  const float one = 1.0F;
  patch(spec.npy.features.path, header.size() + kRows * kRowBytes - sizeof(one),
        std::string(reinterpret_cast<const char*>(&one), sizeof(one)));
  const int64_t before = anonymousBytes();
  const Dataset dataset = readNpyDataset(spec);
  EXPECT_TRUE(dataset.onDisk());
  EXPECT_EQ(dataset.features().as<float>().back(), 1);
  EXPECT_EQ(dataset.features().as<float>()[kRows], 0);
  expectLittleSince(before, kRows * kRowBytes);
  const float infinite = std::numeric_limits<float>::infinity();
  patch(spec.npy.features.path, header.size() + 5 * kRowBytes,
        std::string(reinterpret_cast<const char*>(&infinite), sizeof(infinite)));
  EXPECT_THROW(readNpyDataset(spec), Error);
}

// 70 million numbers; each takes two bytes as text.
TEST(LargeData, ALargeTableTakesLittleMemoryOnceItIsRead) {
  const TemporaryFolder folder;
  constexpr int kColumns = 5000, kRows = 14'000;
  std::string header = "kind", row;
  for (int i = 0; i < kColumns; ++i) header += ",c" + std::to_string(i), row += ",3";
  const std::filesystem::path path = folder.write("t.csv", header + "\n");
  std::ofstream file(path, std::ios::app);
  for (int i = 0; i < kRows; ++i) file << i % 7 << row << '\n';
  file.close();
  cluster::CsvSpec spec;
  spec.label = "kind";
  const int64_t before = anonymousBytes();
  const Dataset table = readCsv(std::vector{path}, spec);
  const Part& features = table.features();
  EXPECT_TRUE(features.onDisk());
  ASSERT_EQ(features.count(), kRows);
  EXPECT_EQ(features.as<float>().back(), 3);
  EXPECT_EQ(table.labels().as<int32_t>()[13], 6);
  expectLittleSince(before, uint64_t{kColumns} * kRows * sizeof(float));
}

TEST(LargeData, ManyImagesTakeNoMemory) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() / "a");
  constexpr uint32_t kSide = 2048;
  const auto image = [](uint8_t grey) {
    return pngOf(kSide, kSide, std::vector<uint8_t>(size_t{kSide} * kSide, grey),
                 {PNG_COLOR_TYPE_GRAY});
  };
  const std::string files[] = {image(3), image(200)};
  for (int i = 0; i < 70; ++i) folder.write("a/" + std::to_string(100 + i) + ".png", files[i % 2]);
  cluster::ImagesSpec spec;
  spec.folder.path = folder.path();
  ASSERT_TRUE(spec.setSize({kSide, kSide}));
  const int64_t before = anonymousBytes();
  const ImageTable table = readImageFolder(spec);
  EXPECT_TRUE(table.dataset.onDisk());
  expectLittleSince(before, uint64_t{70} * kSide * kSide);
  for (int64_t i = 0; i < 70; ++i)
    EXPECT_EQ(table.dataset.features().of(i)[17], i % 2 == 0 ? 3 : 200);
}

}  // namespace
}  // namespace dtf::data
