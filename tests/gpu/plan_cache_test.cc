#include "gpu/plan_cache.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "tests/support/process.h"

namespace dtf::gpu::testing {
namespace {

class PlanCacheTest : public ::testing::Test {
 protected:
  std::filesystem::path theFile() const {
    return *std::filesystem::directory_iterator(folder_.path());
  }
  std::string content() const {
    std::ifstream in(theFile(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  const dtf::testing::TemporaryFolder folder_;
};

TEST_F(PlanCacheTest, KeepsWhatWasChosen) {
  PlanCache cache(folder_.path(), "NVIDIA H200, cuDNN 9.19");
  EXPECT_EQ(cache.find("convolution 1 2 3"), std::nullopt);
  cache.add("convolution 1 2 3", 7);
  cache.add("product 4", 0);
  cache.save();
  const PlanCache again(folder_.path(), "NVIDIA H200, cuDNN 9.19");
  EXPECT_EQ(again.find("convolution 1 2 3"), 7u);
  EXPECT_EQ(again.find("product 4"), 0u);
  EXPECT_EQ(again.find("product 5"), std::nullopt);
}

TEST_F(PlanCacheTest, IsOfOneDeviceAndOneVersion) {
  PlanCache cache(folder_.path(), "NVIDIA H200, cuDNN 9.19");
  cache.add("product 4", 3);
  cache.save();
  EXPECT_EQ(PlanCache(folder_.path(), "NVIDIA H200, cuDNN 9.20").find("product 4"), std::nullopt);
  // Two identities with the same file name are still told apart.
  EXPECT_EQ(PlanCache(folder_.path(), "NVIDIA H200; cuDNN 9.19").find("product 4"), std::nullopt);
}

TEST_F(PlanCacheTest, TakesUpWhatAnotherProcessWroteMeanwhile) {
  PlanCache one(folder_.path(), "gpu"), two(folder_.path(), "gpu");
  one.add("a", 1);
  two.add("b", 2);
  one.save();
  two.save();
  const PlanCache again(folder_.path(), "gpu");
  EXPECT_EQ(again.find("a"), 1u);
  EXPECT_EQ(again.find("b"), 2u);
}

TEST_F(PlanCacheTest, NothingIsTakenFromADamagedFile) {
  PlanCache cache(folder_.path(), "gpu");
  cache.add("convolution 1 2 3", 7);
  cache.save();
  const std::string whole = content();
  const size_t sum = whole.rfind("checksum ");
  for (size_t i = 0; i + 1 < whole.size(); ++i) {  // the last byte ends a line and has no meaning
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 1);
    for (const std::string& text : {damaged, whole.substr(0, i)}) {
      std::ofstream(theFile(), std::ios::binary) << text;
      EXPECT_EQ(PlanCache(folder_.path(), "gpu").find("convolution 1 2 3"), std::nullopt)
          << i << " of " << sum;
    }
  }
}

TEST_F(PlanCacheTest, LivesWithoutAPlace) {
  for (const std::filesystem::path& folder :
       {std::filesystem::path(), std::filesystem::path("/proc/no/such")}) {
    PlanCache cache(folder, "gpu");
    cache.add("a", 1);
    cache.save();
    EXPECT_EQ(cache.find("a"), 1u);
  }
}

}  // namespace
}  // namespace dtf::gpu::testing
