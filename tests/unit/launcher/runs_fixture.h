#pragma once

// Run directories in a folder of their own, and the registries of a user who has no other runs.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "common/base/run_lock.h"
#include "common/base/run_registry.h"
#include "tests/support/process.h"

namespace dtf::launcher {

class RunsTest : public ::testing::Test {
 protected:
  RunsTest() {
    ::setenv("XDG_RUNTIME_DIR", folder_.path().c_str(), 1);
    ::setenv("XDG_STATE_HOME", (root() / "state").c_str(), 1);
    std::filesystem::create_directories(root() / "empty");
    std::filesystem::current_path(root() / "empty");
  }
  ~RunsTest() override {
    std::filesystem::current_path(before_);
    ::unsetenv("XDG_RUNTIME_DIR");
    ::unsetenv("XDG_STATE_HOME");
  }

  std::filesystem::path root() const {
    return std::filesystem::canonical(std::filesystem::path(folder_.path()));
  }
  // A run that ended at `minute` past ten; returns its folder.
  std::filesystem::path ended(const std::string& name, const std::string& job, int minute,
                              const std::string& outcome = "done") const {
    const std::filesystem::path run = root() / name;
    std::filesystem::create_directories(run);
    folder_.write(name + "/summary.json",
                  R"({"schema": 1, "job": ")" + job + R"(", "outcome": ")" + outcome +
                      R"(", "global_step": 50, "final_loss": 0.25, "steps_per_second": 1000,
  "eval": {"loss": 0.5, "accuracy": 0.75, "auc": 0.875, "step": 50},
  "parameters_digest": "006151fa2723f6e2", "exit_code": 0, "wall_seconds": 61.5,
  "ended": "2026-03-01T10:)" +
                      std::to_string(minute) + R"(:00.000+00:00"})");
    return run;
  }
  static void registered(const std::filesystem::path& run, const std::string& job) {
    EXPECT_EQ(registerRun({run / "job.yaml", run, job}), "");
  }
  static RunLock running(const std::filesystem::path& folder) {
    return RunLock(folder, {.job = "busy", .launcher = ::getpid()});
  }

  testing::TemporaryFolder folder_;

 private:
  const std::filesystem::path before_ = std::filesystem::current_path();
};

}  // namespace dtf::launcher
