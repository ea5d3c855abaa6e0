#include "common/train/seen_data.h"

#include <gtest/gtest.h>

#include "tests/support/temporary_files.h"

namespace dtf::train {
namespace {

TEST(SeenData, CountsTheLinesOfLibsvmFiles) {
  const testing::TemporaryFiles files;
  files.write("a.svm", "1 1:1\n# none\n0 2:1\n");
  files.write("b.svm", "1 9:bad\n");
  cluster::DatasetSpec spec;
  spec.format = cluster::DatasetSpec::Format::kLibsvm;
  spec.files = {"a.svm", "b.svm"};
  spec.files_marks = {{"job.yaml", 3, 4}, {"job.yaml", 3, 9}};
  spec.libsvm.shape = {5};
  const SeenData seen = seenLibsvm(spec);
  EXPECT_EQ(seen.features.shape, Shape{5});
  EXPECT_FALSE(seen.count.has_value()) << "some lines may be bad records";
  EXPECT_EQ(seen.bytes, 3u * (5 * 4 + 4));
  EXPECT_EQ(seen.name, "a.svm");
  EXPECT_EQ(seen.mark.line, 3);
}

TEST(SeenData, PixelsAreBytes) {
  const SeenData seen = seenPixels(7, Shape{2, 2}, "the images", {});
  EXPECT_EQ(seen.count, 7);
  EXPECT_EQ(seen.features.dtype, DType::kUInt8);
}

}  // namespace
}  // namespace dtf::train
