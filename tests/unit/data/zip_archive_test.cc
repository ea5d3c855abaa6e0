#include "common/data/zip_archive.h"

#include <gtest/gtest.h>

#include "common/base/error.h"
#include "tests/unit/data/idx_files.h"
#include "tests/unit/data/npy_files.h"

namespace dtf::data {
namespace {

std::string textOf(const ByteBlock& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string failureOf(const std::string& bytes, const std::string& name = "a",
                      uint64_t bytes_max = 1 << 20) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.write("x.npz", bytes);
  try {
    ZipArchive(path).read(name, bytes_max);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadData);
    return error.message().substr(path.string().size() + 2);
  }
  return "";
}

TEST(ZipArchive, ReadsStoredAndDeflatedFiles) {
  const TemporaryFolder folder;
  const std::string text(100'000, 'x');
  for (const bool deflate : {false, true}) {
    const ZipArchive archive(
        folder.write("x.npz", zipOf({{"a", text}, {"b", "short"}, {"c", ""}}, deflate)));
    EXPECT_EQ(archive.names(), (std::vector<std::string>{"a", "b", "c"}));
    EXPECT_EQ(textOf(archive.read("a", text.size())), text);
    EXPECT_EQ(textOf(archive.read("b", 100)), "short");
    EXPECT_EQ(textOf(archive.read("c", 100)), "");
    for (const size_t bytes : {size_t{0}, size_t{70'000}, text.size(), text.size() + 1}) {
      const ZipArchive::Beginning beginning = archive.readBeginning("a", bytes);
      EXPECT_EQ(beginning.whole_bytes, text.size());
      EXPECT_EQ(std::string(beginning.bytes.begin(), beginning.bytes.end()), text.substr(0, bytes));
    }
  }
}

TEST(ZipArchive, NamesWhatIsWrong) {
  EXPECT_EQ(
      failureOf("no zip at all"),
      "this looks like text such as CSV, 'no zip at all'; expected a zip archive (.npz is one)");
  EXPECT_EQ(failureOf(""), "the file is empty");
  EXPECT_EQ(failureOf(zipOf({{"a", "abc"}}).substr(0, 40)),
            "truncated: the zip archive lacks its directory");
  EXPECT_EQ(failureOf(zipOf({{"x_train.npy", "x"}}), "x_tran.npy"),
            "there is no 'x_tran.npy' in the archive: it has x_train.npy");
  EXPECT_EQ(failureOf(zipOf({{"images.npy", "x"}, {"y.npy", "y"}}), "x.npy"),
            "there is no 'x.npy' in the archive: it has images.npy, y.npy");
  EXPECT_EQ(failureOf(zipOf({{"a", "abc"}}), "a", 2), "'a' has 3 bytes, at most 2 are read");
}

// The rest may be larger than memory, or damaged.
TEST(ZipArchive, ABeginningIsReadWithoutTheRest) {
  const TemporaryFolder folder;
  std::string text(3'000'000, 'x');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * i >> 7);
  for (const bool deflate : {false, true}) {
    std::string bytes = zipOf({{"a", text}}, deflate);
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
    const ZipArchive archive(folder.write("x.npz", bytes));
    EXPECT_THROW(archive.read("a", text.size()), Error) << "by pieces";
    const ZipArchive::Beginning beginning = archive.readBeginning("a", 1000);
    EXPECT_EQ(std::string(beginning.bytes.begin(), beginning.bytes.end()), text.substr(0, 1000));
  }
}

// A changed byte gives an error or the right bytes, wherever it is.
TEST(ZipArchive, NoDamageGoesUnnoticedOrFurther) {
  const std::string text = "some text that deflate makes shorter, shorter, shorter, shorter";
  const TemporaryFolder folder;
  for (const bool deflate : {false, true}) {
    const std::string good = zipOf({{"a", text}}, deflate);
    for (size_t at = 0; at < good.size(); ++at) {
      for (const int change : {1, 0xFF}) {
        std::string damaged = good;
        damaged[at] = static_cast<char>(damaged[at] ^ change);
        const std::filesystem::path path = folder.write("x.npz", damaged);
        try {
          EXPECT_EQ(textOf(ZipArchive(path).read("a", 1000)), text) << at;
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ErrorCode::kBadData);
        }
      }
    }
    for (size_t size = 0; size < good.size(); ++size)
      EXPECT_NE(failureOf(good.substr(0, size)), "") << size;
  }
}

// A thousand files that share the same bytes would each unpack to all of them.
TEST(ZipArchive, FilesThatShareBytesAreRefused) {
  const std::string good = zipOf({{"a", "abc"}, {"b", "abc"}});
  const size_t first = good.find("PK\x01\x02"), second = good.find("PK\x01\x02", first + 4);
  ASSERT_NE(second, std::string::npos);
  std::string shared = good;
  // Sizes of the whole archive, from the same offset.
  for (const size_t entry : {first, second}) {
    shared.replace(entry + 20, 4, littleEndian(good.size() - 40, 4));
    shared.replace(entry + 42, 4, littleEndian(0, 4));
  }
  EXPECT_NE(failureOf(shared).find("files in it overlap"), std::string::npos) << failureOf(shared);
}

}  // namespace
}  // namespace dtf::data
