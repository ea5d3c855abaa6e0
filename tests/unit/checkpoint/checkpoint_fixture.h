#pragma once

// A small job with values that are functions of (name, element, step). It is written through the
// whole protocol on a simulated disk, and compared bit by bit when it is read back.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/base/checksum.h"
#include "common/base/random.h"
#include "common/checkpoint/checkpoint_folder.h"
#include "common/checkpoint/restore.h"
#include "common/checkpoint/shard_file.h"
#include "tests/support/simulated_disk.h"
#include "tests/support/test_seed.h"

namespace dtf::checkpoint {

using testing::testSeed;

inline const std::filesystem::path kFolder = "/run/checkpoints";

// Any bit pattern, including NaNs with a payload: a checkpoint stores bits, not numbers.
inline float valueAt(const std::string& name, uint64_t element, uint64_t step) {
  const auto counter = static_cast<uint32_t>(element);
  const uint64_t key = checksumOf(name) + step * 0x9E3779B97F4A7C15;
  return std::bit_cast<float>(philox(
      {counter, 0, 0, 0}, {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)})[0]);
}

inline std::vector<VariableInfo> smallModel() {
  return {{"dense/kernel", Shape{30, 7}, {"Adam", "Adam_1"}},
          {"dense/bias", Shape{7}, {"Adam", "Adam_1"}},
          {"scale", Shape{}, {}}};
}

inline std::vector<std::string> tensorNames(const VariableInfo& variable) {
  std::vector<std::string> names = {variable.name};
  for (const std::string& slot : variable.slots) names.push_back(variable.name + "/" + slot);
  return names;
}

// The parts of one ps task, with their values.
struct ShardValues {
  std::vector<TensorPart> parts;
  std::vector<std::vector<float>> storage;
};

// Cuts every tensor into one range for each ps at random places; ranges may be empty. A slot is cut
// like its variable.
inline std::vector<ShardValues> cutModel(const std::vector<VariableInfo>& variables,
                                         uint32_t ps_tasks, uint64_t step, Random& random) {
  std::vector<ShardValues> shards(ps_tasks);
  for (const VariableInfo& variable : variables) {
    const auto elements = static_cast<uint64_t>(variable.shape.elements());
    std::vector<uint64_t> cuts = {0, elements};
    for (uint32_t i = 1; i < ps_tasks; ++i) cuts.push_back(random.below(elements + 1));
    std::sort(cuts.begin(), cuts.end());
    for (uint32_t ps = 0; ps < ps_tasks; ++ps) {
      const uint64_t begin = cuts[ps];
      const uint64_t count = cuts[ps + 1] - begin;
      for (const std::string& name : tensorNames(variable)) {
        std::vector<float> values(count);
        for (uint64_t i = 0; i < count; ++i) values[i] = valueAt(name, begin + i, step);
        shards[ps].storage.push_back(std::move(values));
        shards[ps].parts.push_back(
            {name, variable.shape, begin, count, shards[ps].storage.back().data()});
      }
    }
  }
  return shards;
}

inline Manifest manifestFor(const std::vector<VariableInfo>& variables, uint64_t step,
                            std::vector<ShardFile> shards) {
  Manifest manifest;
  manifest.job = "test";
  manifest.global_step = step;
  manifest.seed = 7;
  manifest.worker_batches = {step, step + 1};
  manifest.optimizer = "adam learning_rate=0.001";
  manifest.clocks.assign(shards.size(), ClockState{step, 0.9 / 3, 1e-300});
  manifest.model_fingerprint = "f";
  manifest.data = "digits";
  manifest.variables = variables;
  manifest.run_seconds = static_cast<double>(step) / 3;
  manifest.created = "now";
  manifest.dtf_version = "0.1.0";
  manifest.extra = {{"k", "v"}};
  manifest.shards = std::move(shards);
  return manifest;
}

// Saves one checkpoint through the whole protocol. On an Error it abandons the attempt, as the
// chief does, and rethrows.
inline CommitOutcome save(FileSystem& disk, CheckpointFolder& folder, uint64_t step,
                          uint32_t ps_tasks, Random& random,
                          const std::vector<VariableInfo>& model = smallModel()) {
  const auto values = cutModel(model, ps_tasks, step, random);
  try {
    const auto attempt = folder.path() / folder.beginAttempt(step);
    std::vector<ShardFile> shards;
    for (uint32_t ps = 0; ps < ps_tasks; ++ps)
      shards.push_back(writeShard(disk, attempt, ps, ps_tasks, values[ps].parts));
    return folder.commit(manifestFor(model, step, std::move(shards)));
  } catch (const std::exception&) {
    folder.abandon();
    throw;
  }
}

// Reads elements [begin, begin + count) and returns whether all bits are right.
inline bool partIsRight(FileSystem& disk, const Latest::Found& found, const std::string& name,
                        uint64_t begin, uint64_t count) {
  std::vector<float> values(count);
  readPart(disk, found.folder, found.manifest, name, begin, count, values.data());
  for (uint64_t i = 0; i < count; ++i)
    if (std::bit_cast<uint32_t>(values[i]) !=
        std::bit_cast<uint32_t>(valueAt(name, begin + i, found.manifest.global_step)))
      return false;
  return true;
}

inline bool allIsRight(FileSystem& disk, const Latest::Found& found,
                       const std::vector<VariableInfo>& model = smallModel()) {
  for (const VariableInfo& variable : found.manifest.variables)
    for (const std::string& name : tensorNames(variable))
      if (!partIsRight(disk, found, name, 0, static_cast<uint64_t>(variable.shape.elements())))
        return false;
  return found.manifest.variables == model;
}

// A disk with the folder "/run/checkpoints" on it, all of it durable.
inline std::unique_ptr<testing::SimulatedDisk> newDisk() {
  auto disk = std::make_unique<testing::SimulatedDisk>();
  disk->makeFolder("/run");
  disk->syncFolder("/");
  CheckpointFolder(*disk, kFolder, Incarnation{1}).prepare();
  return disk;
}

}  // namespace dtf::checkpoint
