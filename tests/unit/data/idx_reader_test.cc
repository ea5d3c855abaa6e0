#include "common/data/idx_reader.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "common/base/error.h"
#include "common/data/label_check.h"
#include "tests/unit/data/idx_files.h"

namespace dtf::data {
namespace {

// Returns the message of the kBadData error that `read` must throw.
template <class Read>
std::string failure(Read read) {
  try {
    read();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadData);
    return error.message();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

std::string readFailure(const std::filesystem::path& path, uint64_t bytes_max = kIdxBytesMax) {
  return failure([&] { readIdx(path, 3, 4, bytes_max); });
}

const std::string kTwoByTwo = idxHeader(kImagesMagic, {3, 2, 2}) + "aaaabbbbcccc";

TEST(IdxReader, ReadsPlainAndGzipByContentNotByName) {
  const TemporaryFolder folder;
  // Both names lie.
  for (const auto& path :
       {folder.write("plain.gz", kTwoByTwo), folder.write("packed", gzipped(kTwoByTwo))}) {
    const IdxArray array = readIdx(path, 3, 4);
    EXPECT_EQ(array.dims, (std::vector<uint32_t>{3, 2, 2}));
    EXPECT_EQ(std::string(array.bytes.data(), array.bytes.data() + array.bytes.size()),
              "aaaabbbbcccc");
  }
}

TEST(IdxReader, ReadsSeveralGzipMembersAsOne) {
  const TemporaryFolder folder;
  const auto path =
      folder.write("x", gzipped(kTwoByTwo.substr(0, 9)) + gzipped(kTwoByTwo.substr(9)));
  EXPECT_EQ(readIdx(path, 3, 3).bytes.size(), 12u);
}

TEST(IdxReader, NamesAMissingFile) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "nowhere.gz";
  EXPECT_EQ(readFailure(path), path.string() + ": cannot open it: No such file or directory (2)");
  EXPECT_EQ(readFailure(folder.path()), folder.path().string() + ": not a regular file");
  const auto pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(readFailure(pipe), pipe.string() + ": not a regular file") << "nobody writes to it";
}

TEST(IdxReader, SaysWhatATruncatedFileHolds) {
  const TemporaryFolder folder;
  auto path = folder.write("x", kTwoByTwo.substr(0, kTwoByTwo.size() - 5));
  EXPECT_EQ(
      readFailure(path),
      path.string() + ": truncated: the header promises 3 x 2 x 2 = 12 bytes, the file holds 7");
  path = folder.write("x", gzipped(kTwoByTwo.substr(0, kTwoByTwo.size() - 5)));
  EXPECT_EQ(
      readFailure(path),
      path.string() + ": truncated: the header promises 3 x 2 x 2 = 12 bytes, the file holds 7");
  path = folder.write("x", kTwoByTwo.substr(0, 11));
  EXPECT_EQ(readFailure(path),
            path.string() + ": truncated: the file ends in the header, before dimension 2 of 3");
}

TEST(IdxReader, RefusesTrailingBytes) {
  const TemporaryFolder folder;
  for (const auto& bytes : {kTwoByTwo + "!", gzipped(kTwoByTwo + "!")}) {
    const auto path = folder.write("x", bytes);
    EXPECT_EQ(
        readFailure(path),
        path.string() +
            ": trailing bytes: the header promises 3 x 2 x 2 = 12 bytes, the file holds more");
  }
  const auto path = folder.write("x", gzipped(kTwoByTwo) + "!");
  EXPECT_EQ(readFailure(path),
            path.string() +
                ": trailing bytes after the gzip data, neither gzip nor padding; fetch it again");
}

TEST(IdxReader, SaysWhatAFileOfAnotherKindLooksLike) {
  const TemporaryFolder folder;
  constexpr std::string_view kWanted =
      "; expected an IDX file of images: unsigned bytes in 3 or 4 dimensions (magic number "
      "00000803 "
      "or 00000804)";
  const std::pair<std::string, std::string> kFiles[] = {
      {idxHeader(kLabelsMagic, {3}) + "abc",
       "an IDX file of unsigned bytes with 1 dimension, as labels have"},
      {idxHeader(0xD03, {1, 1, 1}) + "abcd", "an IDX file of 32-bit floats with 3 dimensions"},
      {"label,pixel0,pixel1\n5,0,0\n", "text such as CSV, 'label,pixel0,pixel1'"},
      {"1\n", "text such as CSV, '1'"},
      {"<!DOCTYPE html><html>", "a web page or XML, '<!DOCTYPE html><html>'"},
      {"\x89PNG....", "a PNG image"},
      {std::string("\x01\x02\x03\x00z", 5), "data of an unknown kind, 01 02 03 00 7a"},
  };
  for (const auto& [bytes, kind] : kFiles)
    for (const std::string& held : {bytes, gzipped(bytes)}) {
      const auto path = folder.write("x", held);
      EXPECT_EQ(readFailure(path),
                path.string() + ": this looks like " + kind + std::string(kWanted));
    }
  const auto path = folder.write("x", kTwoByTwo);
  EXPECT_EQ(failure([&] { readIdxLabels(path); }),
            path.string() +
                ": this looks like an IDX file of unsigned bytes with 3 dimensions; expected an "
                "IDX file of labels: unsigned bytes in 1 dimension (magic number 00000801)");
  EXPECT_EQ(readFailure(folder.write("x", "")),
            (folder.path() / "x").string() + ": the file is empty");
}

TEST(IdxReader, TellsWhereMnistComesFrom) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "train-images-idx3-ubyte.gz";
  EXPECT_EQ(readFailure(path), path.string() +
                                   ": cannot open it: No such file or directory (2); "
                                   "scripts/fetch-mnist.sh fetches MNIST");
}

TEST(IdxReader, AHeaderAloneTellsWhatTheWholeFileWould) {
  const TemporaryFolder folder;
  for (const std::string& held : {kTwoByTwo, gzipped(kTwoByTwo)}) {
    const IdxImages images = readIdxImagesHeader(folder.write("x", held));
    EXPECT_EQ(images.count, 3);
    EXPECT_EQ(images.example_shape, (Shape{2, 2, 1}));
  }
  for (const std::string& held :
       {kTwoByTwo + "!", kTwoByTwo.substr(0, kTwoByTwo.size() - 5), std::string("label,pixel\n"),
        idxHeader(kImagesMagic, {1 << 16, 1 << 8, 1 << 8})}) {
    const auto path = folder.write("x", held);
    EXPECT_EQ(failure([&] { readIdxImagesHeader(path); }), readFailure(path)) << held.size();
  }
}

TEST(IdxReader, RefusesAHeaderThatPromisesMoreThanTheFileCanHold) {
  const TemporaryFolder folder;
  // Nothing is allocated for the images, which would take 4 GB.
  auto path = folder.write("x", idxHeader(kImagesMagic, {1 << 16, 1 << 8, 1 << 8}));
  EXPECT_NE(readFailure(path).find("= 4294967296 bytes, the file holds 0"), std::string::npos);
  path = folder.write("x", gzipped(idxHeader(kImagesMagic, {1 << 16, 1 << 8, 1 << 8})));
  EXPECT_NE(readFailure(path).find("the file can unpack to at most"), std::string::npos);
}

TEST(IdxReader, RefusesDimensionsWhoseProductOverflows) {
  const TemporaryFolder folder;
  const auto path =
      folder.write("x", idxHeader(kImagesMagic, {0xffffffff, 0xffffffff, 0xffffffff}) + "abc");
  EXPECT_NE(
      readFailure(path).find("too large: the header promises 4294967295 x 4294967295 x 4294967295"),
      std::string::npos);
}

TEST(IdxReader, UnpacksABombOnlyAsFarAsItsLimit) {
  const TemporaryFolder folder;
  const std::string zeros(1 << 20, '\0');
  const auto path =
      folder.write("x", gzipped(idxHeader(kImagesMagic, {1, 1 << 10, 1 << 10}) + zeros));
  EXPECT_LT(std::filesystem::file_size(path), 4096u);
  EXPECT_NE(
      readFailure(path, 1 << 19)
          .find("too large: the header promises 1 x 1024 x 1024 = 1048576 bytes, at most 524288"),
      std::string::npos);
  EXPECT_EQ(readIdx(path, 3, 3).bytes.size(), zeros.size());
}

TEST(IdxReader, RefusesEveryCutAndManyDamagesOfAGzipFile) {
  const TemporaryFolder folder;
  const std::string packed = gzipped(kTwoByTwo);
  for (size_t cut = 2; cut < packed.size(); ++cut)
    EXPECT_NE(readFailure(folder.write("x", packed.substr(0, cut))).find("damaged gzip data"),
              std::string::npos)
        << cut;
  for (size_t at = 10; at < packed.size();
       ++at) {  // behind the gzip header, where names and times may differ
    std::string damaged = packed;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    EXPECT_FALSE(readFailure(folder.write("x", damaged)).empty()) << at;
  }
}

TEST(IdxDataset, PairsImagesWithLabels) {
  const TemporaryFolder folder;
  const auto images = folder.write("images", kTwoByTwo);
  const auto labels =
      folder.write("labels", idxHeader(kLabelsMagic, {3}) + std::string("\x01\x00\x07", 3));
  const Dataset dataset = readIdxDataset(images, readIdxLabels(labels));
  EXPECT_EQ(dataset.size(), 3);
  EXPECT_EQ(dataset.features().spec().shape, (Shape{2, 2, 1}));
  EXPECT_EQ(classesOf(dataset.labels()), 8);
  EXPECT_EQ(dataset.features().of(1)[0], 'b');
  EXPECT_EQ(dataset.labels().of(2)[0], 7);
}

TEST(IdxDataset, KeepsTheChannelsOfFourDimensions) {
  const TemporaryFolder folder;
  const auto images = folder.write("images", idxHeader(0x804, {1, 2, 2, 3}) + "abcdefghijkl");
  const auto labels = folder.write("labels", idxHeader(kLabelsMagic, {1}) + "a");
  EXPECT_EQ(readIdxDataset(images, readIdxLabels(labels)).features().spec().shape,
            (Shape{2, 2, 3}));
}

TEST(IdxDataset, RefusesCountsThatDiffer) {
  const TemporaryFolder folder;
  const auto images = folder.write("images", kTwoByTwo);
  const auto labels = folder.write("labels", idxHeader(kLabelsMagic, {2}) + "ab");
  EXPECT_EQ(failure([&] { readIdxDataset(images, readIdxLabels(labels)); }),
            labels.string() + ": 2 labels, but " + images.string() +
                " holds 3 images: the two files don't belong together");
}

TEST(IdxDataset, RefusesAnEmptyOne) {
  const TemporaryFolder folder;
  const auto images = folder.write("images", idxHeader(kImagesMagic, {0, 28, 28}));
  const auto labels = folder.write("labels", idxHeader(kLabelsMagic, {0}));
  EXPECT_EQ(failure([&] { readIdxDataset(images, readIdxLabels(labels)); }),
            images.string() + ": empty: the header promises 0 x 28 x 28 = 0 bytes");
}

}  // namespace
}  // namespace dtf::data
