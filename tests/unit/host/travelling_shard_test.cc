// Shards to a chief with the files on its own disk, and back to any number of ps.

#include "common/host/travelling_shard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "common/base/checksum.h"
#include "common/base/random.h"
#include "common/checkpoint/restore.h"
#include "common/host/shard_files.h"
#include "common/optimizer/optimizer.h"
#include "common/train/gathered_files.h"
#include "tests/support/simulated_disk.h"
#include "tests/support/test_seed.h"

namespace dtf::host {
namespace {

using dtf::testing::testSeed;

constexpr Incarnation kChiefOfTravels{1};
const std::filesystem::path kHere = "/here";    // the files that the chief gathered
const std::filesystem::path kThere = "/there";  // the files that the ps would have written

// Draws a model whose variables have parts on any ps, in any order.
arena::ModelDeclaration drawnModel(Random& random, uint32_t ps_tasks) {
  std::vector<arena::VariableParts> variables;
  for (int v = 0; v < 4; ++v) {
    const uint64_t elements = 1 + random.below(v == 0 ? 300'000 : 50);
    arena::VariableParts variable{
        "v" + std::to_string(v), Shape{static_cast<int64_t>(elements)}, {}};
    for (uint64_t begin = 0; begin < elements;) {
      const uint64_t count = std::min(elements - begin, 1 + random.below(elements));
      variable.parts.push_back({static_cast<uint32_t>(random.below(ps_tasks)), begin, count});
      begin += count;
    }
    variables.push_back(std::move(variable));
  }
  arena::ModelDeclaration model;
  model.layout = arena::makeLayout(variables, ps_tasks);
  model.optimizer.kind = cluster::OptimizerSpec::Kind::kAdam;
  model.steps = 10;
  model.replication = {cluster::ReplicationSpec::Mode::kSync, 1, 1};
  return model;
}

// All ps of a job, and the pieces that pass between them and the chief.
class Travel final : public checkpoint::ShardTransfer {
 public:
  Travel(const arena::ModelDeclaration& model, Random& random) : model_(model) {
    const auto ps_tasks = static_cast<uint32_t>(model.layout.shards.size());
    for (uint32_t i = 0; i < ps_tasks; ++i) {
      shard::Shard shard({.ps_task = i, .ps_tasks = ps_tasks, .workers = 1}, clock_, runner_,
                         nullptr);
      shard.workers().join(0, kChiefOfTravels);
      shard.workers().declare(0, kChiefOfTravels, model);
      std::vector<float> values(model.layout.shards[i].elements);
      for (float& value : values) value = static_cast<float>(random.uniform());
      shard.initialise(0, kChiefOfTravels, values);
      shard.cuts().cutAt(kChiefOfTravels, replication::kFirstEpoch, {0},
                         [](const replication::CutAnswer&) {});
      captured_.push_back(shard.cuts().captured(kChiefOfTravels, {0}));
    }
  }

  std::vector<checkpoint::SavedShard> stage(const CutPosition&) override {
    std::vector<checkpoint::SavedShard> saved;
    for (uint32_t i = 0; i < captured_.size(); ++i) {
      staged_.push_back(std::make_unique<StagedShard>(i, captured_[i]));
      saved.push_back(staged_.back()->saved());
      if (lie) lie(saved.back());
    }
    return saved;
  }
  std::string fetch(uint32_t ps_task, uint64_t offset, uint64_t file_bytes) override {
    std::string bytes(std::min(checkpoint::kPieceBytesMax, file_bytes - offset), '\0');
    staged_[ps_task]->read(offset, {bytes.data(), bytes.size()});
    if (offset == 0 && damages) bytes[20] ^= 1;
    return bytes;
  }
  void release(bool) override { staged_.clear(); }
  void expect(const checkpoint::CutHead& head) override {
    for (uint32_t i = 0; i < captured_.size(); ++i)
      brought_.push_back(std::make_unique<BroughtShard>(i, model_, 1, head));
  }
  void bring(uint32_t ps_task, const checkpoint::ArenaPlace& place,
             std::span<const float> values) override {
    ASSERT_LE(values.size_bytes(), checkpoint::kPieceBytesMax);
    brought_[ps_task]->take(place,
                            {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
  }
  void commit(const checkpoint::GoingBack&) override {}

  const shard::CapturedShard& captured(uint32_t i) const { return captured_[i]; }
  shard::RestoredShard restored(uint32_t i) { return brought_[i]->finish(); }

  bool damages = false;                                // damages the first piece
  std::function<void(checkpoint::SavedShard&)> lie{};  // changes the staged shard

 private:
  const arena::ModelDeclaration model_;
  ManualClock clock_;
  optimizer::InlineUpdateRunner runner_;
  std::vector<shard::CapturedShard> captured_;
  std::vector<std::unique_ptr<StagedShard>> staged_;
  std::vector<std::unique_ptr<BroughtShard>> brought_;
};

class TravellingShard : public ::testing::Test {
 protected:
  TravellingShard() {
    for (const auto& folder : {kHere, kThere}) disk_.makeFolder(folder);
  }
  checkpoint::Manifest manifestOf(const arena::ModelDeclaration& model,
                                  const std::vector<checkpoint::SavedShard>& saved) {
    checkpoint::Manifest manifest;
    manifest.job = "travel";
    manifest.worker_batches = {0};
    for (const arena::VariableInfo& variable : model.layout.variables)
      manifest.variables.push_back({variable.name, variable.shape, {"Adam", "Adam_1"}});
    for (const checkpoint::SavedShard& shard : saved) {
      manifest.shards.push_back(shard.file);
      manifest.clocks.push_back(shard.clock);
    }
    EXPECT_EQ(checkpoint::manifestProblem(manifest), "");
    return manifest;
  }

  testing::SimulatedDisk disk_;
};

bool same(const Buffer& a, const Buffer& b) {
  return a.bytes() == b.bytes() &&
         (a.bytes() == 0 || std::memcmp(a.data(), b.data(), a.bytes()) == 0);
}

TEST_F(TravellingShard, WhatGathersIsWhatThePsWouldWriteAndAnyNumberOfThemTakesItBack) {
  for (uint64_t round = 0; round < 20; ++round) {
    SCOPED_TRACE("seed " + std::to_string(testSeed()) + ", round " + std::to_string(round));
    Random random(testSeed(), round);
    testing::SimulatedDisk disk;
    for (const auto& folder : {kHere, kThere}) disk.makeFolder(folder);
    const arena::ModelDeclaration model =
        drawnModel(random, static_cast<uint32_t>(1 + random.below(4)));
    Travel ps(model, random);
    const auto saved = train::gatherShards(disk, ps, kHere, {0}, model);
    for (uint32_t i = 0; i < saved.size(); ++i) {
      const checkpoint::SavedShard written = saveShard(disk, kThere, i, ps.captured(i));
      EXPECT_EQ(saved[i].file, written.file);
      EXPECT_EQ(disk.contents(kHere / written.file.file),
                disk.contents(kThere / written.file.file));
    }

    // The same variables on another number of ps.
    const auto ps_tasks = static_cast<uint32_t>(1 + random.below(4));
    std::vector<arena::VariableParts> variables;
    for (const arena::VariableInfo& variable : model.layout.variables) {
      const auto elements = static_cast<uint64_t>(variable.shape.elements());
      const uint64_t cut = random.below(elements + 1);
      variables.push_back({variable.name, variable.shape, {}});
      if (cut > 0) variables.back().parts.push_back({ps_tasks - 1, 0, cut});
      if (cut < elements) variables.back().parts.push_back({0, cut, elements - cut});
    }
    arena::ModelDeclaration other = model;
    other.layout = arena::makeLayout(variables, ps_tasks);
    const checkpoint::Manifest manifest = manifestOf(model, saved);
    disk.create(kHere / checkpoint::kManifestFile)
        ->write(checkpoint::encodeManifest(manifest).data(),
                checkpoint::encodeManifest(manifest).size());
    Travel back(other, random);
    train::bringShards(disk, back, kHere, manifest, other);
    for (uint32_t i = 0; i < ps_tasks; ++i) {
      const shard::RestoredShard brought = back.restored(i);
      const shard::RestoredShard read = restoreShard(disk, kHere, i, other, 1);
      EXPECT_TRUE(same(brought.values, read.values)) << "ps/" << i;
      ASSERT_EQ(brought.slots.size(), 2u);
      for (size_t slot = 0; slot < 2; ++slot)
        EXPECT_TRUE(same(brought.slots[slot], read.slots[slot])) << "ps/" << i;
      EXPECT_EQ(brought.step, read.step);
      EXPECT_EQ(brought.position, read.position);
    }
  }
}

TEST_F(TravellingShard, WhatComesDamagedOrIsAnothersIsNoCheckpoint) {
  Random random(testSeed(), 1);
  const arena::ModelDeclaration model = drawnModel(random, 2);
  const auto errorOf = [&](const std::function<void(Travel&)>& spoil) {
    testing::SimulatedDisk disk;
    disk.makeFolder(kHere);
    Travel ps(model, random);
    spoil(ps);
    try {
      train::gatherShards(disk, ps, kHere, {0}, model);
    } catch (const Error& error) {
      EXPECT_EQ(disk.files().size(), error.code() == ErrorCode::kUnavailable ? 1u : 0u);
      return error.message();
    }
    return std::string("taken");
  };
  EXPECT_NE(errorOf([](Travel& ps) { ps.damages = true; }).find("came with the checksum"),
            std::string::npos);
  EXPECT_EQ(errorOf([](Travel& ps) {
              ps.lie = [](checkpoint::SavedShard& saved) { saved.file.file = "../manifest.json"; };
            }),
            "ps/0 calls its shard '../manifest.json', which is 'shard-0-of-2.safetensors'");
  for (const uint64_t bytes : {uint64_t{0}, std::numeric_limits<uint64_t>::max()})
    EXPECT_NE(errorOf([bytes](Travel& ps) {
                ps.lie = [bytes](checkpoint::SavedShard& saved) { saved.file.bytes = bytes; };
              }).find("bytes for its shard, which has at most"),
              std::string::npos);
}

// ---- shards that a ps receives

class BroughtShardTest : public ::testing::Test {
 protected:
  // Two variables on the only ps, with momentum's slot beside each. Their arenas have padding.
  static arena::ModelDeclaration model() {
    arena::ModelDeclaration model;
    model.layout =
        arena::makeLayout({{"b", Shape{40}, {{0, 0, 40}}}, {"a", Shape{5}, {{0, 0, 5}}}}, 1);
    model.optimizer.kind = cluster::OptimizerSpec::Kind::kMomentum;
    model.replication = {cluster::ReplicationSpec::Mode::kSync, 1, 1};
    return model;
  }
  std::string refusal(uint32_t arena, uint64_t offset, size_t bytes) {
    const std::string values(bytes, '\1');
    try {
      shard_.take({arena, offset}, values);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBadData);
      return error.message();
    }
    return "";
  }
  void take(uint32_t arena, uint64_t offset, uint64_t count) {
    EXPECT_EQ(refusal(arena, offset, count * sizeof(float)), "");
  }

  const uint64_t b_ = model().layout.shards[0].slices.at(1).offset;
  BroughtShard shard_{0, model(), 1, {7, {7}, {{}}}};
};

TEST_F(BroughtShardTest, AllThatIsDueMakesItWholeInAnyOrder) {
  take(1, b_, 40);
  take(0, b_ + 20, 20);
  take(0, 0, 5);
  take(0, b_, 10);
  EXPECT_THROW(shard_.finish(), Error);
  take(1, 0, 2);
  take(1, 3, 2);
  take(1, 2, 1);
  take(0, b_ + 10, 10);
  const shard::RestoredShard restored = shard_.finish();
  EXPECT_EQ(restored.step, 7u);
  float value = 0;
  std::memset(&value, 1, sizeof(value));
  EXPECT_EQ(restored.values.as<float>()[b_ + 39], value);
  EXPECT_EQ(restored.slots.at(0).as<float>()[2], value);
}

TEST_F(BroughtShardTest, WhatIsMissingIsCounted) {
  take(0, 0, 5);
  try {
    shard_.finish();
    FAIL() << "it is whole";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "ps/0 received 5 of the 90 values of its part of the checkpoint");
  }
}

TEST_F(BroughtShardTest, WhatIsNoneOfItsValuesIsRefused) {
  EXPECT_EQ(refusal(0, 0, 0),
            "ps/0 received 0 bytes at element 0 of arena 0, which are not values of this shard");
  EXPECT_NE(refusal(0, 0, 7), "") << "no number of floats";
  EXPECT_NE(refusal(2, 0, 4), "") << "momentum has one slot";
  EXPECT_NE(refusal(0, 4, 8), "") << "from a variable into its padding";
  EXPECT_NE(refusal(0, b_ + 40, 4), "") << "behind the last";
  EXPECT_NE(refusal(0, std::numeric_limits<uint64_t>::max(), 8), "");
  take(0, b_ + 10, 10);
  for (const uint64_t offset : {b_ + 10, b_ + 5, b_ + 19})
    EXPECT_NE(refusal(0, offset, 6 * sizeof(float)).find("which overlap earlier ones"),
              std::string::npos);
  take(0, b_ + 4, 6);
}

TEST_F(BroughtShardTest, ACheckpointHasAClock) {
  EXPECT_THROW(BroughtShard(0, model(), 1, {7, {7}, {}}), Error);
}

}  // namespace
}  // namespace dtf::host
