#pragma once

// A job in one process in a folder of its own, and the output of verbs about it.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "common/base/error.h"
#include "common/cluster/cluster_yaml.h"
#include "launcher/commands.h"
#include "tests/support/process.h"

namespace dtf::launcher {

class VerbTest : public ::testing::Test {
 protected:
  VerbTest() {
    for (const char* name : {"XDG_RUNTIME_DIR", "XDG_STATE_HOME"})  // for the registries of runs
      ::setenv(name, folder_.path().c_str(), 1);
    options_.cluster_file =
        folder_.write("job.yaml", "job: tiny\nrun_dir: " + runDir().string() +
                                      "\n"
                                      "cluster: {worker: [local]}\n"
                                      "train:\n"
                                      "  model:\n"
                                      "    input: {shape: [28, 28, 1]}\n"
                                      "    layers: [flatten, dense: {units: 10, name: softmax}]\n"
                                      "    loss: sparse_categorical_crossentropy\n"
                                      "    metrics: [accuracy]\n"
                                      "  data:\n"
                                      "    batch_size: 10\n"
                                      "    train: {format: digits, count: 50}\n"
                                      "    eval: {format: digits, count: 20}\n"
                                      "  steps: 5\n"
                                      "  checkpoint: {}\n");
    job_ = cluster::loadCluster(options_.cluster_file, {});
  }
  ~VerbTest() override {
    for (const char* name : {"XDG_RUNTIME_DIR", "XDG_STATE_HOME"}) ::unsetenv(name);
  }

  std::filesystem::path runDir() const { return std::filesystem::path(folder_.path()) / "run"; }

  // Returns the text that `verb` writes to stdout; its exit code is in code_.
  std::string printed(const std::function<int()>& verb) {
    ::testing::internal::CaptureStdout();
    try {
      code_ = verb();
    } catch (...) {
      ::testing::internal::GetCapturedStdout();
      throw;
    }
    return ::testing::internal::GetCapturedStdout();
  }
  // Returns the message of the error that `verb` ends with; it must have this code.
  std::string refusal(ErrorCode code, const std::function<int()>& verb) {
    try {
      printed(verb);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.message();
      return error.message();
    }
    ADD_FAILURE() << "no error";
    return "";
  }

  testing::TemporaryFolder folder_;
  Options options_;
  cluster::JobSpec job_;
  int code_ = -1;
};

}  // namespace dtf::launcher
