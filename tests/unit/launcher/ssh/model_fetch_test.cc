#include "launcher/ssh/model_fetch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <map>

#include "common/base/error.h"
#include "common/base/file.h"
#include "common/checkpoint/staying_shards.h"
#include "launcher/ssh/model_files.h"
#include "tests/support/temporary_files.h"
#include "tests/unit/checkpoint/checkpoint_fixture.h"

// Hosts are folders of one simulated disk: /node1, /node2, ...; the launcher's is /run.

namespace dtf::launcher {

namespace fs = std::filesystem;

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ModelFetchTest : public ::testing::Test {
 protected:
  ModelFetchTest() {
    disk_->makeFolder("/here");
    for (const char* host : {"/node1", "/node2", "/node3"}) disk_->makeFolder(host);
    options_.run_dir = "/here";
    options_.step = 120;
    options_.chief = "node1";
    options_.ps = {"node2", "node3"};
  }

  void save(const std::string& host, uint64_t step, uint64_t seed = 3) {
    checkpoint::CheckpointFolder folder(*disk_, "/" + host + "/checkpoints", Incarnation{7});
    if (!disk_->exists(folder.path())) folder.prepare();
    Random random{seed};
    checkpoint::save(*disk_, folder, step, 2, random);
  }
  // Saves a checkpoint as `stay: true` does: shard 0 on `first`, shard 1 on `second`.
  void saveStaying(const std::string& first, const std::string& second) {
    save("node1", 120);
    const fs::path folder = "/node1/checkpoints/step-120";
    checkpoint::Manifest manifest = checkpoint::readManifest(*disk_, folder);
    manifest.stays_in = "step-120-7.1";
    for (const auto& [shard, host] : {std::pair(0, first), std::pair(1, second)}) {
      checkpoint::ShardFile& file = manifest.shards[static_cast<size_t>(shard)];
      file.host = host;
      const fs::path to =
          checkpoint::makeStaying(*disk_, "/" + host + "/shards", manifest.stays_in);
      const std::string bytes = disk_->contents(folder / file.file);
      disk_->create(to / file.file)->write(bytes.data(), bytes.size());
      disk_->removeFile(folder / file.file);
    }
    disk_->setContents(folder / "manifest.json", checkpoint::encodeManifest(manifest));
  }

  std::unique_ptr<ModelFetch> fetch() {
    return std::make_unique<ModelFetch>(*disk_, clock_, options_,
                                        [this](const std::string& text) { told_.push_back(text); });
  }
  // Lets the host send at most `files_max` files.
  void serve(ModelFetch& model, int files_max = 100) {
    for (std::optional<ModelAsk> ask; files_max-- > 0 && (ask = model.next());) {
      asked_.push_back(ask->host + ":" + ask->name);
      using Found = FetchedReport::Found;
      if (same_run_dir_ && isManifest(ask->name)) {
        model.take(FetchedReport{Found::kSame});
        continue;
      }
      const auto file = ModelFileReader::open(*disk_, "/" + ask->host, ask->name);
      if (!file) {
        model.take(FetchedReport{Found::kAbsent});
        continue;
      }
      model.take(FetchedReport{Found::kThere, file->bytes()});
      for (std::string piece = file->next(100); !piece.empty(); piece = file->next(100))
        model.take(piece);
    }
  }
  Error failureOf(ModelFetch& model) {
    try {
      serve(model);
    } catch (const Error& error) {
      return error;
    }
    ADD_FAILURE() << "all is well";
    return {ErrorCode::kInternal, ""};
  }
  std::vector<uint64_t> steps(const fs::path& run_dir = "/here") {
    return checkpoint::CheckpointFolder(*disk_, run_dir / "checkpoints", Incarnation{1}).steps();
  }
  bool isWholeHere() {
    checkpoint::CheckpointFolder folder(*disk_, "/here/checkpoints", Incarnation{1});
    const checkpoint::Latest latest = folder.latestValid();
    return latest.found && latest.found->manifest.global_step == 120 &&
           checkpoint::allIsRight(*disk_, *latest.found);
  }
  bool hasFilesOfAnAttempt() const {
    for (const fs::path& file : disk_->files())
      if (file.string().find(".tmp") != std::string::npos) return true;
    return false;
  }

  std::unique_ptr<testing::SimulatedDisk> disk_ = std::make_unique<testing::SimulatedDisk>();
  ManualClock clock_;
  ModelFetchOptions options_;
  bool same_run_dir_ = false;
  std::vector<std::string> told_, asked_;
};

TEST_F(ModelFetchTest, ACheckpointIsHereWhenAllOfItIs) {
  save("node1", 120);
  const auto model = fetch();
  serve(*model, 2);
  EXPECT_FALSE(model->done());
  EXPECT_TRUE(steps().empty());
  serve(*model);
  EXPECT_TRUE(model->done());
  EXPECT_TRUE(isWholeHere());
  EXPECT_FALSE(hasFilesOfAnAttempt());
  EXPECT_THAT(asked_, ElementsAre("node1:checkpoints/step-120/manifest.json",
                                  "node1:checkpoints/step-120/shard-0-of-2.safetensors",
                                  "node1:checkpoints/step-120/shard-1-of-2.safetensors"));
  EXPECT_THAT(told_, ElementsAre(HasSubstr("the checkpoint of step 120, ")));
}

TEST_F(ModelFetchTest, WhatAnEarlierLaunchHasBroughtDoesNotComeAgain) {
  save("node1", 120);
  serve(*fetch());
  asked_.clear();
  const auto again = fetch();
  serve(*again);
  EXPECT_TRUE(again->done());
  EXPECT_THAT(asked_, ElementsAre("node1:checkpoints/step-120/manifest.json"));
}

TEST_F(ModelFetchTest, ADamagedOneIsRefusedAndLeavesNothing) {
  save("node1", 120);
  const fs::path shard = "/node1/checkpoints/step-120/shard-1-of-2.safetensors";
  std::string bytes = disk_->contents(shard);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  disk_->setContents(shard, bytes);
  {
    const auto model = fetch();
    const Error error = failureOf(*model);
    EXPECT_EQ(error.code(), ErrorCode::kBadData);
    EXPECT_THAT(error.message(), HasSubstr("node1: checkpoints/step-120/shard-1-of-2.safetensors "
                                           "was damaged there, or on its way: its checksum is "));
  }
  EXPECT_TRUE(steps().empty());
  EXPECT_FALSE(hasFilesOfAnAttempt());
  disk_->setContents(shard, bytes + "x");
  EXPECT_THAT(failureOf(*fetch()).message(), HasSubstr("safetensors can't have "));
  disk_->setContents("/node1/checkpoints/step-120/manifest.json", "{}");
  EXPECT_EQ(failureOf(*fetch()).code(), ErrorCode::kBadData);
  disk_->removeFile("/node1/checkpoints/step-120/manifest.json");
  EXPECT_EQ(failureOf(*fetch()).message(), "node1 has no checkpoints/step-120/manifest.json");
}

TEST_F(ModelFetchTest, ADiskThatIsFullHereLeavesNothing) {
  save("node1", 120);
  disk_->failAll(testing::SimulatedDisk::Op::kWrite, ENOSPC);
  EXPECT_THAT(failureOf(*fetch()).message(), HasSubstr("No space left on device"));
  disk_->heal();
  EXPECT_TRUE(steps().empty());
  EXPECT_FALSE(hasFilesOfAnAttempt());
}

// The free room is the real disk's.
TEST_F(ModelFetchTest, WhatDoesNotFitIsRefusedBeforeItComes) {
  save("node1", 120);
  constexpr uint64_t kElements = uint64_t{1} << 50, kHeaderBytes = 64;
  checkpoint::ShardFile shard{checkpoint::shardFileName(0, 1), kHeaderBytes + 4 * kElements, 0, {}};
  shard.parts.push_back({"v", 0, kElements, kHeaderBytes, 0});
  disk_->setContents("/node1/checkpoints/step-120/manifest.json",
                     checkpoint::encodeManifest(checkpoint::manifestFor(
                         {{"v", Shape{int64_t{kElements}}, {}}}, 120, {shard})));
  disk_->makeFolder("/tmp");
  options_.run_dir = "/tmp";
  const Error error = failureOf(*fetch());
  EXPECT_EQ(error.code(), ErrorCode::kCannotWrite);
  EXPECT_THAT(error.message(), HasSubstr("and the disk of /tmp has room for "));
  EXPECT_EQ(asked_.size(), 1u);
}

TEST_F(ModelFetchTest, AHostThatSendsNothingMoreIsNamed) {
  save("node1", 120);
  const auto model = fetch();
  serve(*model, 1);
  clock_.advance(ModelFetch::kNextWithin * 2);
  model->look();  // nothing is awaited
  ASSERT_TRUE(model->next());
  model->look();
  clock_.advance(ModelFetch::kNextWithin + std::chrono::seconds(1));
  try {
    model->look();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kDeadline);
    EXPECT_EQ(
        error.message(),
        "node1: no more of checkpoints/step-120/shard-0-of-2.safetensors arrived within 60 s");
  }
}

TEST_F(ModelFetchTest, WhatNobodyAskedForIsRefused) {
  save("node1", 120);
  const auto model = fetch();
  EXPECT_THROW(model->take("x"), Error);
  EXPECT_THROW(model->take(FetchedReport{FetchedReport::Found::kThere, 5}), Error);
  ASSERT_TRUE(model->next());
  EXPECT_FALSE(model->next()) << "one after the other";
  model->take(FetchedReport{FetchedReport::Found::kThere, 5});
  EXPECT_THROW(model->take(FetchedReport{FetchedReport::Found::kThere, 5}), Error);
  EXPECT_THROW(model->take("123456"), Error);
}

TEST_F(ModelFetchTest, NoBytesAreNoFile) {
  save("node1", 120);
  const auto model = fetch();
  serve(*model, 1);
  ASSERT_TRUE(model->next());
  EXPECT_THROW(model->take(""), Error) << "before it was said how many there are";
}

TEST_F(ModelFetchTest, OnlyTheHostThatIsAskedIsAwaited) {
  saveStaying("node2", "node3");
  const auto model = fetch();
  EXPECT_FALSE(model->awaits("node1"));
  ASSERT_TRUE(model->next());
  EXPECT_TRUE(model->awaits("node1"));
  EXPECT_FALSE(model->awaits("node2"));
}

// The rest of a stream may have been on its way.
TEST_F(ModelFetchTest, WhatComesAfterTheEndIsRefused) {
  const FetchedReport absent{FetchedReport::Found::kAbsent};
  save("node1", 120);
  serve(*fetch());
  for (const bool is_chiefs : {false, true}) {
    same_run_dir_ = is_chiefs;
    const auto nothing_to_bring = fetch();
    serve(*nothing_to_bring);
    ASSERT_TRUE(nothing_to_bring->done());
    EXPECT_FALSE(nothing_to_bring->awaits("node1"));
    EXPECT_THROW(nothing_to_bring->take(absent), Error);
    EXPECT_THROW(nothing_to_bring->take("x"), Error);
  }
  EXPECT_TRUE(isWholeHere());
}

TEST_F(ModelFetchTest, ShardsThatStayAreAskedOfTheirPsFirst) {
  saveStaying("node2", "node2");
  const auto model = fetch();
  serve(*model);
  EXPECT_TRUE(model->done());
  EXPECT_TRUE(isWholeHere());
  EXPECT_THAT(asked_, ElementsAre("node1:checkpoints/step-120/manifest.json",
                                  "node2:shards/step-120-7.1/shard-0-of-2.safetensors",
                                  "node3:shards/step-120-7.1/shard-1-of-2.safetensors",
                                  "node2:shards/step-120-7.1/shard-1-of-2.safetensors"));
}

TEST_F(ModelFetchTest, AShardThatNoHostHasIsNamed) {
  saveStaying("node2", "here");
  options_.ps = {"node2"};
  const Error error = failureOf(*fetch());
  EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
  EXPECT_EQ(error.message(), "no host of a ps has shards/step-120-7.1/shard-1-of-2.safetensors");
  EXPECT_EQ(asked_.back(), "node1:checkpoints/step-120/shard-1-of-2.safetensors");
}

TEST_F(ModelFetchTest, WhereTheChiefIsOnlyShardsOfOthersCome) {
  same_run_dir_ = true;
  saveStaying("node1", "node3");
  options_.run_dir = "/node1";
  serve(*fetch());
  EXPECT_THAT(asked_, ElementsAre("node1:checkpoints/step-120/manifest.json",
                                  "node3:shards/step-120-7.1/shard-1-of-2.safetensors"));
  EXPECT_TRUE(disk_->exists("/node1/checkpoints/step-120/shard-1-of-2.safetensors"));
  EXPECT_TRUE(checkpoint::verifyCheckpoint(*disk_, "/node1/checkpoints/step-120",
                                           checkpoint::VerifyDepth::kFull)
                  .whole());
  asked_.clear();
  serve(*fetch());
  EXPECT_EQ(asked_.size(), 1u) << "nothing is lacking";
}

TEST_F(ModelFetchTest, NewerOnesAreOfAnotherRunAndSetAside) {
  save("here", 300);
  save("node1", 120);
  serve(*fetch());
  EXPECT_TRUE(isWholeHere());
  EXPECT_THAT(steps(), ElementsAre(120u));
  EXPECT_TRUE(disk_->exists("/here/checkpoints.old-1/step-300/manifest.json"));
  EXPECT_THAT(told_.back(), HasSubstr("were of another run, and are in checkpoints.old-1 now"));
  EXPECT_FALSE(disk_->exists("/here/checkpoints.coming"));
}

TEST_F(ModelFetchTest, AnotherRunsStayInPlaceUntilTheNewOneIsWhole) {
  save("here", 300);
  save("node1", 120);
  {
    const auto model = fetch();
    serve(*model, 2);
    EXPECT_THAT(steps(), ElementsAre(300u));
  }
  EXPECT_THAT(steps(), ElementsAre(300u));
  EXPECT_FALSE(disk_->exists("/here/checkpoints.old-1"));
  EXPECT_FALSE(disk_->exists("/here/checkpoints.coming"));
  // Left by launchers that were killed: within an attempt, and before it took its place.
  for (const char* left : {"step-300.tmp-7.1", "step-300"}) {
    const fs::path coming = "/here/checkpoints.coming";
    for (const fs::path& folder : {coming, coming / left}) disk_->makeFolder(folder);
    disk_->create(coming / left / "manifest.json")->write("{}", 2);
    serve(*fetch());
    EXPECT_TRUE(isWholeHere());
    EXPECT_FALSE(disk_->exists("/here/checkpoints.coming"));
    checkpoint::CheckpointFolder(*disk_, "/here/checkpoints", Incarnation{9}).setAside();
  }
}

// For each operation of the disk.
TEST_F(ModelFetchTest, ADiskThatFailsOnceLosesNeitherRunsCheckpoints) {
  int failures = 0;
  for (size_t operation = 0;; ++operation) {
    SCOPED_TRACE(operation);
    disk_ = std::make_unique<testing::SimulatedDisk>();
    for (const char* folder : {"/here", "/node1"}) disk_->makeFolder(folder);
    save("here", 300);
    save("node1", 120);
    const size_t begin = disk_->operations().size();
    disk_->failAt(begin + operation, EIO);
    bool fails = false;
    try {
      serve(*fetch());
    } catch (const Error& error) {
      fails = true;
      EXPECT_THAT(error.message(), HasSubstr("Input/output error"));
    }
    if (disk_->operations().size() <= begin + operation) break;
    failures += fails;
    disk_->heal();
    const bool is_other_here = steps() == std::vector<uint64_t>{300};
    EXPECT_TRUE(is_other_here || disk_->exists("/here/checkpoints.old-1/step-300/manifest.json"));
    EXPECT_TRUE(is_other_here || isWholeHere());
    serve(*fetch());
    EXPECT_TRUE(isWholeHere()) << "the next launch brings it";
  }
  EXPECT_GT(failures, 10);
}

TEST_F(ModelFetchTest, TheInitialValuesTakeThePlaceOfAnotherRunsToo) {
  options_.step = 0;
  save("here", 300);
  save("node1", 0);
  serve(*fetch());
  EXPECT_THAT(steps(), ElementsAre(0u));
  EXPECT_TRUE(disk_->exists("/here/checkpoints.old-1/step-300/manifest.json"));
}

// They are not part of the checkpoint, and are written to the real disk.
TEST_F(ModelFetchTest, TheChoicesOfKernelsComeLastWhereTheyWereTimed) {
  const testing::TemporaryFiles files;
  options_.run_dir = fs::current_path();
  for (fs::path folder = "/"; const fs::path& part : options_.run_dir.relative_path())
    if (folder /= part; !disk_->exists(folder)) disk_->makeFolder(folder);
  options_.kernels = true;
  save("node1", 120);
  disk_->create("/node1/kernels.json")->write("the choices", 11);
  {
    const auto model = fetch();
    serve(*model, 3);
    EXPECT_FALSE(model->done());
    EXPECT_FALSE(fs::exists("kernels.json"));
    serve(*model);
    EXPECT_TRUE(model->done());
  }
  EXPECT_EQ(asked_.back(), "node1:kernels.json");
  EXPECT_EQ(readFile("kernels.json", 100), "the choices");
  EXPECT_THAT(steps(options_.run_dir), ElementsAre(120u));

  checkpoint::CheckpointFolder(*disk_, options_.run_dir / "checkpoints", Incarnation{9}).setAside();
  disk_->removeFile("/node1/kernels.json");
  serve(*fetch());
  EXPECT_THAT(steps(options_.run_dir), ElementsAre(120u)) << "a run may have timed none";
}

TEST_F(ModelFetchTest, AnotherOneOfTheSameStepIsSetAsideAndADamagedCopyReplaced) {
  save("here", 120, 4);
  save("node1", 120);
  serve(*fetch());
  EXPECT_TRUE(isWholeHere());
  EXPECT_TRUE(disk_->exists("/here/checkpoints.old-1/step-120/manifest.json"));
  EXPECT_FALSE(disk_->exists("/here/checkpoints.coming"));
  const fs::path shard = "/here/checkpoints/step-120/shard-0-of-2.safetensors";
  disk_->setContents(shard, disk_->contents(shard) + "x");
  serve(*fetch());
  EXPECT_TRUE(isWholeHere());
  EXPECT_FALSE(disk_->exists("/here/checkpoints.old-2"));
}

TEST_F(ModelFetchTest, OlderOnesGoAsTheChiefsDo) {
  options_.keep.keep = 2;
  for (const uint64_t step : {40, 80}) save("here", step);
  save("node1", 120);
  serve(*fetch());
  EXPECT_THAT(steps(), ElementsAre(80u, 120u));
}

}  // namespace dtf::launcher
