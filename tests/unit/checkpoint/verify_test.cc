// Damage on the disk: every flipped bit and every truncation is found and named, and the previous
// checkpoint is used.

#include <gtest/gtest.h>

#include "common/base/error.h"
#include "tests/support/repetitions.h"
#include "tests/unit/checkpoint/checkpoint_fixture.h"

namespace dtf::checkpoint {
namespace {

using testing::SimulatedDisk;

// Steps 10 and 20, three shards each; the damage goes to step 20.
class CheckpointDamage : public ::testing::Test {
 protected:
  CheckpointDamage() {
    CheckpointFolder folder(*disk_, kFolder, Incarnation{1});
    for (const uint64_t step : {10, 20}) save(*disk_, folder, step, 3, random_);
    for (const auto& file : disk_->files())
      if (file.parent_path() == kFolder / "step-20") files_.push_back(file);
    manifest_ = readManifest(*disk_, kFolder / "step-20");
  }

  // Returns the stored tensor that holds this byte; empty: none does.
  std::string tensorAt(const std::filesystem::path& file, uint64_t offset) const {
    for (const ShardFile& shard : manifest_.shards)
      for (const StoredPart& part : shard.parts)
        if (shard.file == file.filename() && part.offset <= offset &&
            offset < part.offset + 4 * part.count)
          return part.name;
    return {};
  }

  // Expects that step 20 is rejected with a problem in `file` (and in `tensor`), and step 10 is
  // found.
  void expectFallBack(const std::filesystem::path& file, const std::string& tensor) {
    const Latest latest = CheckpointFolder(*disk_, kFolder, Incarnation{2}).latestValid();
    ASSERT_TRUE(latest.found);
    EXPECT_EQ(latest.found->manifest.global_step, 10u);
    EXPECT_TRUE(allIsRight(*disk_, *latest.found));
    ASSERT_EQ(latest.rejected.size(), 1u);
    EXPECT_EQ(latest.rejected[0].step, 20u);
    ASSERT_EQ(latest.rejected[0].problems.size(), 1u);
    const Problem& problem = latest.rejected[0].problems[0];
    EXPECT_EQ(problem.file, file.filename());
    EXPECT_NE(problem.reason.find(file.string()), std::string::npos) << problem.reason;
    if (tensor.empty()) {
      EXPECT_EQ(problem.tensor, "");
    } else {
      EXPECT_TRUE(problem.tensor == tensor || problem.tensor.starts_with(tensor + "@"))
          << problem.tensor << " for " << tensor;
      EXPECT_NE(problem.reason.find(problem.tensor), std::string::npos) << problem.reason;
    }
  }

  Random random_{testSeed()};
  std::unique_ptr<SimulatedDisk> disk_ = newDisk();
  std::vector<std::filesystem::path> files_;
  Manifest manifest_;
};

TEST_F(CheckpointDamage, EachOf2000FlippedBitsIsFoundAndNamed) {
  ASSERT_EQ(files_.size(), 4u);
  uint64_t bytes_all = 0;
  for (const auto& file : files_) bytes_all += disk_->contents(file).size();
  int in_tensors = 0;
  for (int i = 0; i < dtf::testing::repetitions(2000); ++i) {
    uint64_t at = random_.below(bytes_all);
    size_t which = 0;
    while (at >= disk_->contents(files_[which]).size())
      at -= disk_->contents(files_[which++]).size();
    const auto& file = files_[which];
    const uint64_t bit = random_.below(8);
    SCOPED_TRACE(file.string() + " byte " + std::to_string(at) + " bit " + std::to_string(bit) +
                 ", seed " + std::to_string(testSeed()));
    const std::string good = disk_->contents(file);
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << bit));
    disk_->setContents(file, bad);
    const std::string tensor = tensorAt(file, at);
    in_tensors += !tensor.empty();
    expectFallBack(file, tensor);
    disk_->setContents(file, good);
    if (HasFailure()) return;
  }
  EXPECT_GT(in_tensors, dtf::testing::repetitions(500))
      << "headers, manifest and tensors have all been hit";
  EXPECT_LT(in_tensors, dtf::testing::repetitions(1500));
}

TEST_F(CheckpointDamage, EachOf500TruncationsIsFoundAndNamed) {
  for (int i = 0; i < dtf::testing::repetitions(500); ++i) {
    const auto& file = files_[random_.below(files_.size())];
    const std::string good = disk_->contents(file);
    const uint64_t size = random_.below(good.size());
    SCOPED_TRACE(file.string() + " cut to " + std::to_string(size) + " bytes, seed " +
                 std::to_string(testSeed()));
    disk_->setContents(file, good.substr(0, size));
    expectFallBack(file, tensorAt(file, size));
    // The sizes alone show it, too.
    EXPECT_FALSE(verifyCheckpoint(*disk_, kFolder / "step-20", VerifyDepth::kSizes).whole());
    disk_->setContents(file, good);
    if (HasFailure()) return;
  }
}

TEST_F(CheckpointDamage, EveryBitOfTheManifestCounts) {
  const std::string good = disk_->contents(kFolder / "step-20" / kManifestFile);
  for (size_t bit = 0; bit < 8 * good.size(); bit += 1 + random_.below(5)) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    EXPECT_THROW(decodeManifest(bad, "m"), Error) << "bit " << bit;
  }
}

TEST_F(CheckpointDamage, BytesAddedAreFound) {
  for (const auto& file : files_) {
    const std::string good = disk_->contents(file);
    disk_->setContents(file, good + '\0');
    expectFallBack(file, "");
    disk_->setContents(file, good);
  }
}

TEST_F(CheckpointDamage, AMissingFileIsNamed) {
  for (const auto& file : files_) {
    const std::string good = disk_->contents(file);
    disk_->removeFile(file);
    expectFallBack(file, "");
    disk_->create(file);
    disk_->setContents(file, good);
  }
}

TEST_F(CheckpointDamage, TwoShardsSwappedAreFound) {
  const std::string first = disk_->contents(files_[1]);
  disk_->setContents(files_[1], disk_->contents(files_[2]));
  disk_->setContents(files_[2], first);
  const Latest latest = CheckpointFolder(*disk_, kFolder, Incarnation{2}).latestValid();
  EXPECT_EQ(latest.found->manifest.global_step, 10u);
  EXPECT_GE(latest.rejected[0].problems.size(), 2u);
}

TEST_F(CheckpointDamage, AnOldManifestBesideNewShardsIsFound) {
  // With the same cut, so that the sizes agree.
  const auto fresh = newDisk();
  CheckpointFolder folder(*fresh, kFolder, Incarnation{1});
  for (const uint64_t step : {10, 20}) {
    Random same_cut(5);
    save(*fresh, folder, step, 2, same_cut);
  }
  fresh->setContents(kFolder / "step-20" / kManifestFile,
                     fresh->contents(kFolder / "step-10" / kManifestFile));
  const Latest latest = folder.latestValid();
  EXPECT_EQ(latest.found->manifest.global_step, 10u);
  ASSERT_EQ(latest.rejected.size(), 1u);
  EXPECT_NE(latest.rejected[0].problems.back().reason.find("manifest of step 10"),
            std::string::npos);
}

// A restoring ps reads without verifying first: the tensors that it reads are checked all the same.
TEST_F(CheckpointDamage, ReadingADamagedTensorFailsAndReadingAnotherDoesNot) {
  const ShardFile& shard = manifest_.shards[0];
  ASSERT_GE(shard.parts.size(), 2u);
  const StoredPart& hit = shard.parts[0];
  std::string bad = disk_->contents(kFolder / "step-20" / shard.file);
  bad[hit.offset] = static_cast<char>(bad[hit.offset] ^ 1);
  disk_->setContents(kFolder / "step-20" / shard.file, bad);
  std::vector<float> out(hit.count);
  try {
    readPart(*disk_, kFolder / "step-20", manifest_, hit.name, hit.begin, 1, out.data());
    FAIL() << "the damage was not seen";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadData);
    EXPECT_NE(error.message().find(shard.file), std::string::npos) << error.message();
    EXPECT_NE(error.message().find(hit.name), std::string::npos) << error.message();
  }
  const StoredPart& other = shard.parts[1];
  EXPECT_TRUE(
      partIsRight(*disk_, {kFolder / "step-20", manifest_}, other.name, other.begin, other.count));
}

TEST_F(CheckpointDamage, WhenNothingIsWholeNothingIsFound) {
  for (const uint64_t step : {10, 20}) {
    const auto manifest = kFolder / ("step-" + std::to_string(step)) / kManifestFile;
    disk_->setContents(manifest, "");
  }
  const Latest latest = CheckpointFolder(*disk_, kFolder, Incarnation{2}).latestValid();
  EXPECT_FALSE(latest.found);
  ASSERT_EQ(latest.rejected.size(), 2u);
  EXPECT_EQ(latest.rejected[0].step, 20u) << "newest first";
}

}  // namespace
}  // namespace dtf::checkpoint
