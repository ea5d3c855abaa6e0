#include "common/checkpoint/restore.h"

#include <gtest/gtest.h>

#include <map>

#include "common/base/error.h"
#include "tests/unit/checkpoint/checkpoint_fixture.h"

namespace dtf::checkpoint {
namespace {

// Another number of ps and another placement, both random: each new ps reads its parts at once.
TEST(Restore, AnyPsReadsItsPartsOfWhatAnyOthersWroteBitForBit) {
  const auto variables = smallModel();
  for (uint64_t round = 0; round < 200; ++round) {
    SCOPED_TRACE("seed " + std::to_string(testSeed()) + ", round " + std::to_string(round));
    Random random(testSeed(), round);
    const auto disk = newDisk();
    CheckpointFolder folder(*disk, kFolder, Incarnation{1});
    const auto old_ps = static_cast<uint32_t>(1 + random.below(5));
    const auto new_ps = static_cast<uint32_t>(1 + random.below(5));
    save(*disk, folder, 7, old_ps, random);
    const Latest latest = folder.latestValid();
    ASSERT_TRUE(latest.found);
    EXPECT_EQ(latest.found->manifest.shards.size(), old_ps);
    // The same cut gives the wanted ranges and the right values.
    for (ShardValues& shard : cutModel(variables, new_ps, 7, random)) {
      std::vector<std::vector<float>> got(shard.parts.size());
      std::vector<WantedPart> wanted;
      for (size_t i = 0; i < shard.parts.size(); ++i) {
        const TensorPart& part = shard.parts[i];
        got[i].assign(part.count, -1);
        wanted.push_back({part.name, part.begin, part.count, got[i].data()});
      }
      readParts(*disk, latest.found->folder, latest.found->manifest, wanted);
      for (size_t i = 0; i < wanted.size(); ++i)
        for (uint64_t at = 0; at < wanted[i].count; ++at)
          ASSERT_EQ(std::bit_cast<uint32_t>(got[i][at]),
                    std::bit_cast<uint32_t>(shard.parts[i].data[at]))
              << wanted[i].name << " element " << wanted[i].begin + at;
    }
  }
}

// A callback and a buffer want overlapping ranges of any files, in one reading.
TEST(Restore, WhoTakesItAsItIsReadGetsEachElementOnce) {
  for (uint64_t round = 0; round < 50; ++round) {
    SCOPED_TRACE("seed " + std::to_string(testSeed()) + ", round " + std::to_string(round));
    Random random(testSeed(), round);
    const auto disk = newDisk();
    CheckpointFolder folder(*disk, kFolder, Incarnation{1});
    save(*disk, folder, 7, static_cast<uint32_t>(1 + random.below(5)), random);
    const Latest latest = folder.latestValid();
    const uint64_t begin = random.below(100);
    std::vector<float> filled(110);
    std::map<uint64_t, float> taken;
    const WantedPart fill{"dense/kernel", begin, filled.size(), filled.data()};
    WantedPart take{"dense/kernel", begin, filled.size()};
    take.take = [&](uint64_t from, std::span<const float> values) {
      for (size_t i = 0; i < values.size(); ++i)
        EXPECT_TRUE(taken.emplace(from + i, values[i]).second) << from + i;
    };
    const std::vector<WantedPart> wanted = {take, fill};
    readParts(*disk, latest.found->folder, latest.found->manifest, wanted);
    ASSERT_EQ(taken.size(), filled.size());
    for (const auto& [element, value] : taken) {
      const auto bits = std::bit_cast<uint32_t>(valueAt("dense/kernel", element, 7));
      EXPECT_EQ(std::bit_cast<uint32_t>(value), bits);
      EXPECT_EQ(std::bit_cast<uint32_t>(filled.at(element - begin)), bits);
    }
  }
}

// Larger than the chunks in which a part is read, with callbacks that begin and end inside them.
TEST(Restore, PartsOfSeveralChunksAreReadRight) {
  const uint64_t elements = (1 << 18) * 3 + 77;
  const VariableInfo variable{"big", Shape{static_cast<int64_t>(elements)}, {}};
  std::vector<float> values(elements);
  for (uint64_t i = 0; i < elements; ++i) values[i] = static_cast<float>(i);
  const auto disk = newDisk();
  CheckpointFolder folder(*disk, kFolder, Incarnation{1});
  const auto attempt = kFolder / folder.beginAttempt(1);
  const TensorPart part{"big", variable.shape, 0, elements, values.data()};
  folder.commit(manifestFor({variable}, 1, {writeShard(*disk, attempt, 0, 1, {&part, 1})}));
  const Manifest manifest = readManifest(*disk, kFolder / "step-1");
  std::vector<float> first(300'000);
  std::vector<float> second(500'000);
  const std::vector<WantedPart> wanted = {{"big", 100, first.size(), first.data()},
                                          {"big", 250'000, second.size(), second.data()}};
  readParts(*disk, kFolder / "step-1", manifest, wanted);
  for (size_t i = 0; i < first.size(); ++i) ASSERT_EQ(first[i], values[100 + i]) << i;
  for (size_t i = 0; i < second.size(); ++i) ASSERT_EQ(second[i], values[250'000 + i]) << i;
}

TEST(Restore, WhatIsNotThereIsNamed) {
  const auto disk = newDisk();
  CheckpointFolder folder(*disk, kFolder, Incarnation{1});
  Random random(1);
  save(*disk, folder, 3, 2, random);
  const Manifest manifest = readManifest(*disk, kFolder / "step-3");
  float out[300];
  for (const auto& [name, begin, count] : {std::tuple{"dense/none", 0, 1},
                                           {"dense/kernel", 0, 211},
                                           {"dense/kernel", 211, 0},
                                           {"dense/kernel/Adagrad", 0, 1},
                                           {"dense", 0, 1}}) {
    try {
      readPart(*disk, kFolder / "step-3", manifest, name, begin, count, out);
      FAIL() << name << " was read";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
      EXPECT_NE(error.message().find(name), std::string::npos) << error.message();
    }
  }
  readPart(*disk, kFolder / "step-3", manifest, "dense/kernel", 210, 0, out);  // empty: no error
}

TEST(Restore, OnlyTheFilesThatAreNeededAreOpened) {
  const auto disk = newDisk();
  CheckpointFolder folder(*disk, kFolder, Incarnation{1});
  std::vector<float> values(10, 1.5f);
  const VariableInfo a{"a", Shape{10}, {}};
  const VariableInfo b{"b", Shape{10}, {}};
  const auto attempt = kFolder / folder.beginAttempt(1);
  const TensorPart part_a{"a", a.shape, 0, 10, values.data()};
  const TensorPart part_b{"b", b.shape, 0, 10, values.data()};
  folder.commit(manifestFor({a, b}, 1,
                            {writeShard(*disk, attempt, 0, 2, {&part_a, 1}),
                             writeShard(*disk, attempt, 1, 2, {&part_b, 1})}));
  const Manifest manifest = readManifest(*disk, kFolder / "step-1");
  disk->removeFile(kFolder / "step-1" / shardFileName(0, 2));
  std::vector<float> out(10);
  readPart(*disk, kFolder / "step-1", manifest, "b", 0, 10, out.data());
  EXPECT_EQ(out, values);
  EXPECT_THROW(readPart(*disk, kFolder / "step-1", manifest, "a", 0, 10, out.data()), Error);
}

}  // namespace
}  // namespace dtf::checkpoint
