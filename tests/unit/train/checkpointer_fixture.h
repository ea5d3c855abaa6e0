#pragma once

// A chief with fake ps and a disk in memory.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/train/checkpointer.h"
#include "tests/support/simulated_disk.h"
#include "tests/unit/train/fake_ps.h"

namespace dtf::train {

using CallTexts = std::vector<std::string>;

class CheckpointerTest : public ::testing::Test {
 protected:
  CheckpointerTest() {
    disk_.makeFolder(kRunDir);
    disk_.syncFolder("/");
  }

  // Returns a new process of the chief.
  std::unique_ptr<Checkpointer> chief(cluster::ReplicationSpec::Mode mode, uint64_t steps = 1000,
                                      uint32_t keep = 5) {
    CheckpointerOptions options;
    options.job = job_;
    options.run_dir = kRunDir;
    options.incarnation = Incarnation{++chiefs_};
    options.workers = 2;
    if (checkpoints_) options.spec = {.keep = keep, .mark = {"job.yaml", 12, 3}};
    options.snapshots = snapshots_;
    options.replicas = replicas_;
    options.model = model_;
    options.fresh = fresh_;
    options.elsewhere = elsewhere_;
    arena::ModelDeclaration model = oneVariable(mode, steps);
    model.settings = settings_;
    return std::make_unique<Checkpointer>(disk_, clock_, ps_, model, options);
  }

  checkpoint::CheckpointFolder folder() {
    return {disk_, kRunDir / "checkpoints", Incarnation{1000}};
  }
  std::vector<uint64_t> steps() { return folder().steps(); }

  void damage(uint64_t step, const std::string& file) {
    disk_.setContents(folder().stepFolder(step) / file, "damaged");
  }

  // Saves these steps with a chief of its own.
  void saveAll(std::initializer_list<uint64_t> steps) {
    const auto saving = chief(kSync);
    for (const uint64_t step : steps) {
      ps_.setPosition({step});
      ASSERT_TRUE(saving->save(Motion::kAtRest));
    }
    ps_.calls();
  }

  std::string job_ = "test";
  bool fresh_ = false;
  bool checkpoints_ = true;
  bool snapshots_ = false;
  bool replicas_ = false;
  bool elsewhere_ = false;
  std::vector<arena::Setting> settings_;
  model::ModelSpec model_;
  uint64_t chiefs_ = 0;
  ManualClock clock_;
  testing::SimulatedDisk disk_;
  FakePs ps_{disk_, clock_};
};

}  // namespace dtf::train
