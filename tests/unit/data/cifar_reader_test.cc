#include "common/data/cifar_reader.h"

#include <gtest/gtest.h>

#include <tuple>

#include "common/base/error.h"
#include "tests/unit/data/idx_files.h"

namespace dtf::data {
namespace {

constexpr size_t kPlane = 32 * 32;

// Red is `base`, green one more, blue two more; the first pixel is 100 more.
std::string record(char label, int base) {
  std::string bytes(1, label);
  for (int channel = 0; channel < 3; ++channel) {
    std::string plane(kPlane, static_cast<char>(base + channel));
    plane[0] = static_cast<char>(base + channel + 100);
    bytes += plane;
  }
  return bytes;
}

std::string failure(const std::filesystem::path& path, const CifarLabels& labels = {}) {
  try {
    readCifar(std::vector{path}, labels);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadData);
    return error.message();
  }
  return "no error";
}

TEST(CifarReader, PutsTheChannelsOfAPixelSideBySide) {
  const TemporaryFolder folder;
  const std::vector<std::filesystem::path> files = {
      folder.write("a.bin", record(3, 10) + record(9, 20)),
      folder.write("b.bin", gzipped(record(0, 30)))};
  EXPECT_EQ(readCifarCount(files[0], {}), 2);
  EXPECT_EQ(readCifarCount(files[1], {}), 1);
  const Dataset dataset = readCifar(files, {});
  EXPECT_EQ(dataset.size(), 3);
  EXPECT_EQ(dataset.features().spec().shape.str(), "[32, 32, 3]");
  EXPECT_EQ(std::vector<int>(dataset.labels().bytes().begin(), dataset.labels().bytes().end()),
            (std::vector<int>{3, 9, 0}));
  for (int i = 0; i < 3; ++i) {
    const auto image = dataset.features().of(i).first(6);
    const int base = 10 * (i + 1);
    EXPECT_EQ(std::vector<int>(image.begin(), image.end()),
              (std::vector<int>{base + 100, base + 101, base + 102, base, base + 1, base + 2}));
  }
}

TEST(CifarReader, NamesTheFileAndTheRecordThatIsWrong) {
  const TemporaryFolder folder;
  const auto cut = folder.write("cut", record(1, 0) + record(1, 0).substr(0, 100));
  EXPECT_EQ(failure(cut), cut.string() +
                              ": record 1 has 100 bytes, one of CIFAR-10 has 3073: the file is cut "
                              "off, or of another kind");
  EXPECT_THROW(readCifarCount(cut, {}), Error);
  const auto label = folder.write("label", record(1, 0) + record(10, 0));
  EXPECT_EQ(failure(label), label.string() + ": record 1 has label 10; CIFAR-10 has 0 to 9");
  EXPECT_THROW(readCifarCount(label, {}), Error) << "before a job starts";
  const auto empty = folder.write("empty", "");
  EXPECT_EQ(failure(empty), empty.string() + ": the file is empty");
  EXPECT_NE(failure(folder.path() / "nowhere").find("cannot open it"), std::string::npos);
}

TEST(CifarReader, RecordsOfCifar100AndOtherKindsAreNamed) {
  const TemporaryFolder folder;
  const std::string of_100 = std::string(1, 4) + record(62, 0) + std::string(1, 13) + record(7, 0);
  for (const std::string& bytes : {of_100, gzipped(of_100)})
    EXPECT_EQ(failure(folder.write("train.bin", bytes)),
              (folder.path() / "train.bin").string() +
                  ": this looks like 2 records of CIFAR-100, of 3074 bytes each; expected the "
                  "binary version of CIFAR-10. Say format: cifar100");
  EXPECT_EQ(failure(folder.write("batch", "\x80\x02}q\x01")),
            (folder.path() / "batch").string() +
                ": this looks like a pickle of Python; expected the binary version of CIFAR-10");
}

CifarLabels of100(cluster::LabelMode mode) {
  cluster::DatasetSpec spec;
  spec.format = cluster::DatasetSpec::Format::kCifar100;
  spec.label_mode = mode;
  return cifarLabels(spec);
}

// A record of CIFAR-100 is one of CIFAR-10 behind another label.
TEST(CifarReader, EitherLabelOfCifar100IsRead) {
  const TemporaryFolder folder;
  const std::vector<std::filesystem::path> files = {folder.write(
      "train.bin", std::string(1, 4) + record(62, 10) + std::string(1, 19) + record(99, 20))};
  for (const auto& [mode, expected, classes] :
       {std::tuple{cluster::LabelMode::kFine, std::vector<int>{62, 99}, 100},
        {cluster::LabelMode::kCoarse, std::vector<int>{4, 19}, 20}}) {
    const CifarLabels labels = of100(mode);
    EXPECT_EQ(labels.classesToLearn(), classes);
    EXPECT_EQ(readCifarCount(files[0], labels), 2);
    const Dataset dataset = readCifar(files, labels);
    EXPECT_EQ(std::vector<int>(dataset.labels().bytes().begin(), dataset.labels().bytes().end()),
              expected);
    const auto image = dataset.features().of(1).first(6);
    EXPECT_EQ(std::vector<int>(image.begin(), image.end()),
              (std::vector<int>{120, 121, 122, 20, 21, 22}));
  }
}

TEST(CifarReader, ALabelOfCifar100BeyondItsClassesIsRefused) {
  const TemporaryFolder folder;
  const CifarLabels labels = of100(cluster::LabelMode::kFine);
  const auto coarse = folder.write("coarse", std::string(1, 20) + record(1, 0));
  EXPECT_EQ(failure(coarse, labels),
            coarse.string() + ": record 0 has label 20; CIFAR-100 has 0 to 19");
  const auto fine = folder.write("fine", std::string(1, 1) + record(100, 0));
  EXPECT_EQ(failure(fine, labels),
            fine.string() + ": record 0 has label 100; CIFAR-100 has 0 to 99");
  const auto of_10 = folder.write("of_10", record(1, 0) + record(9, 0));
  EXPECT_NE(failure(of_10, labels)
                .find("2 records of CIFAR-10, of 3073 bytes each; expected the "
                      "binary version of CIFAR-100. Say format: cifar10"),
            std::string::npos)
      << failure(of_10, labels);
}

}  // namespace
}  // namespace dtf::data
