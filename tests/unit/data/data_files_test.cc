#include "common/data/data_files.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "tests/support/temporary_files.h"

namespace dtf::data {

using Format = cluster::DatasetSpec::Format;

TEST(MissingPath, TheFirstFileThatIsNotHereIsNamed) {
  const testing::TemporaryFiles files;
  cluster::DatasetSpec dataset;
  EXPECT_EQ(missingPath(dataset), "") << "digits have no files";
  dataset.format = Format::kIdx;
  dataset.images = "images";
  dataset.labels = "labels";
  files.write("images", "");
  EXPECT_EQ(missingPath(dataset), "labels");
  files.write("labels", "");
  EXPECT_EQ(missingPath(dataset), "");
  dataset.files = {"images", "table.csv"};
  EXPECT_EQ(missingPath(dataset), "table.csv");
}

TEST(BytesOfFiles, FilesThatAreGoneCountNothing) {
  const testing::TemporaryFiles files;
  files.write("a.csv", "12345");
  files.write("b.csv", "678");
  cluster::DatasetSpec dataset;
  EXPECT_EQ(bytesOfFiles(dataset), 0u);
  dataset.files = {"a.csv", "gone.csv", "b.csv"};
  EXPECT_EQ(bytesOfFiles(dataset), 8u);
}

TEST(FilesText, NamesTheFirstFileAndHowMuchThereIs) {
  const testing::TemporaryFiles files;
  files.write("a.csv", "12345");
  files.write("b.csv", "678");
  cluster::DatasetSpec dataset;
  EXPECT_EQ(filesText(dataset), "") << "drawn";
  dataset.format = Format::kCsv;
  dataset.files = {"a.csv"};
  EXPECT_EQ(filesText(dataset), "a.csv, 5 B");
  dataset.files = {"a.csv", "b.csv"};
  EXPECT_EQ(filesText(dataset), "a.csv and 1 more, 8 B");
  dataset = {};
  dataset.format = Format::kImages;
  dataset.image_folder.folder.path = "photos";
  EXPECT_EQ(filesText(dataset), "the images of photos");
}

TEST(MissingPath, TheArraysOfAnArchiveAreNoFiles) {
  const testing::TemporaryFiles files;
  files.write("a.npz", "");
  cluster::DatasetSpec dataset;
  dataset.format = Format::kNpz;
  dataset.npy.archive.path = "a.npz";
  dataset.npy.features.path = "x";
  EXPECT_EQ(missingPath(dataset), "");
  dataset.format = Format::kNpy;
  EXPECT_EQ(missingPath(dataset), "x");
}

TEST(FilesOf, AllThatItsKeysNameAndTheImagesOfAFolder) {
  const testing::TemporaryFiles files;
  cluster::DatasetSpec dataset;
  dataset.format = Format::kIdx;
  dataset.images = "images.gz";
  dataset.labels = "labels.gz";
  EXPECT_EQ(filesOf(dataset).files, (std::vector<std::filesystem::path>{"images.gz", "labels.gz"}));
  std::filesystem::create_directories("photos/cats/old");
  std::filesystem::create_directories("photos/dogs");
  files.write("photos/cats/old/1.png", "");
  files.write("photos/cats/notes.txt", "");
  dataset = {};
  dataset.format = Format::kImages;
  dataset.image_folder.folder.path = "photos";
  const DataFiles found = filesOf(dataset);
  EXPECT_EQ(found.files, (std::vector<std::filesystem::path>{"photos/cats/old/1.png"}));
  EXPECT_EQ(found.folders, (std::vector<std::filesystem::path>{"photos/cats", "photos/dogs"}));
}

// Messages still use the job's names.
TEST(FilesOf, CopiesAreFoundWhereTheyWereSent) {
  const testing::TemporaryFiles files;
  const std::filesystem::path copies = std::filesystem::current_path() / "copies";
  std::filesystem::create_directories(copies / "photos/cats");
  files.write("copies/photos/cats/1.png", "");
  files.write("copies/a.csv", "12345");
  ::setenv("DTF_SENT_DATA", copies.c_str(), 1);
  cluster::DatasetSpec dataset;
  dataset.files = {"/a.csv"};
  EXPECT_EQ(missingPath(dataset), "");
  EXPECT_EQ(bytesOfFiles(dataset), 5u);
  dataset.files = {"/b.csv"};
  EXPECT_EQ(missingPath(dataset), "/b.csv");
  dataset = {};
  dataset.format = Format::kImages;
  dataset.image_folder.folder.path = "/photos";
  EXPECT_EQ(filesOf(dataset).files, (std::vector<std::filesystem::path>{"/photos/cats/1.png"}));
  ::unsetenv("DTF_SENT_DATA");
}

}  // namespace dtf::data
