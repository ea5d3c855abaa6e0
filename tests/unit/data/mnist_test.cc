// The real MNIST, if it is present (scripts/fetch-mnist.sh fetches it): the reader against files of
// another origin.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "common/data/idx_reader.h"
#include "common/data/label_check.h"
#include "tests/unit/data/idx_files.h"

namespace dtf::data {
namespace {

Dataset pairOf(const std::filesystem::path& folder, const std::string& name) {
  const auto labels = folder / (name + "-labels-idx1-ubyte.gz");
  return readIdxDataset(folder / (name + "-images-idx3-ubyte.gz"), readIdxLabels(labels));
}

TEST(Mnist, HasTheKnownSizesAndCounts) {
  const auto folder = findMnist(DTF_SOURCE_ROOT);
  if (!folder) GTEST_SKIP() << "no MNIST: set DTF_MNIST_DIR, or run scripts/fetch-mnist.sh";
  const Dataset train = pairOf(*folder, "train");
  EXPECT_EQ(train.size(), 60000);
  EXPECT_EQ(train.features().spec().shape, (Shape{28, 28, 1}));
  EXPECT_EQ(classesOf(train.labels()), 10);
  // http://yann.lecun.com/exdb/mnist/: the first training examples are a 5, a 0 and a 4; there are
  // 6742 ones.
  EXPECT_EQ((std::array{train.labels().of(0)[0], train.labels().of(1)[0], train.labels().of(2)[0]}),
            (std::array<uint8_t, 3>{5, 0, 4}));
  EXPECT_EQ(std::ranges::count(train.labels().bytes(), 1), 6742);
  // The mean of the training pixels is 0.1307 of white, the figure in common use for normalising.
  const double sum =
      std::accumulate(train.features().bytes().begin(), train.features().bytes().end(), 0.0);
  EXPECT_NEAR(sum / 255 / static_cast<double>(train.features().bytes().size()), 0.1307, 0.0001);

  const Dataset test = pairOf(*folder, "t10k");
  EXPECT_EQ(test.size(), 10000);
  EXPECT_EQ(test.labels().of(0)[0], 7);
}

}  // namespace
}  // namespace dtf::data
