#include "common/model_files/zip_writer.h"

#include <gtest/gtest.h>

namespace dtf::model_files {
namespace {

uint32_t read32(const std::string& bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i)
    value |= uint32_t{static_cast<unsigned char>(bytes[at + i])} << 8 * i;
  return value;
}

// tests/e2e/export_python_test.py checks the rest with Python's zipfile.
TEST(ZipWriter, StoresFilesWithTheirChecksums) {
  ZipWriter zip;
  zip.add("a", "1234", "56789");
  zip.add("b/c", "", "");
  const std::string bytes = zip.finish();
  EXPECT_EQ(read32(bytes, 0), 0x04034b50u);
  EXPECT_EQ(read32(bytes, 14), 0xCBF43926u) << "the check value of CRC-32: of 123456789";
  EXPECT_EQ(read32(bytes, 18), 9u);
  EXPECT_EQ(bytes.substr(30, 10), "a123456789");
  const size_t end = bytes.size() - 22;
  EXPECT_EQ(read32(bytes, end), 0x06054b50u);
  EXPECT_EQ(read32(bytes, end + 8), 2u | 2u << 16) << "files";
  const uint32_t directory = read32(bytes, end + 16);
  EXPECT_EQ(read32(bytes, directory), 0x02014b50u);
  EXPECT_EQ(directory + read32(bytes, end + 12), end);
  EXPECT_EQ(read32(bytes, directory + 46 + 1 + 42), 40u) << "where the second file begins";
}

TEST(ZipWriter, TheSameFilesGiveTheSameBytes) {
  const auto make = [] {
    ZipWriter zip;
    zip.add("a", "x", "y");
    return zip.finish();
  };
  EXPECT_EQ(make(), make());
}

}  // namespace
}  // namespace dtf::model_files
