#include "common/data/data_files.h"

#include <gtest/gtest.h>

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

}  // namespace dtf::data
