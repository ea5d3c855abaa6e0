#pragma once

// Data in a temporary folder, and the job that init writes for them, read as by dtf-launch.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>

#include "common/base/error.h"
#include "common/cluster/cluster_yaml.h"
#include "common/model/model_graph.h"
#include "launcher/init/job_file.h"
#include "tests/support/process.h"

namespace dtf::launcher {

class InitTest : public ::testing::Test {
 protected:
  std::filesystem::path path(const std::string& name) const {
    return std::filesystem::path(folder_.path()) / name;
  }

  // Returns the job of describe()'s file, after a test build of its model.
  cluster::JobSpec jobOf(const DatasetProfile& profile) {
    const JobPlace place{"tried", path("tried.yaml")};
    file_ = describe(profile, place);
    std::ofstream(place.file) << file_.text;
    cluster::JobSpec job;
    try {
      job = cluster::loadCluster(place.file, {});
      const cluster::TrainSpec& train = job.train.value();
      model::buildTrainingGraph(train.model, train.data.batch_size, model::TableGradient::kSparse);
    } catch (const Error& error) {
      ADD_FAILURE() << error.message() << "\n" << file_.text;
    }
    return job;
  }
  cluster::JobSpec jobOf(const std::string& name,
                         const std::optional<std::string>& target = std::nullopt) {
    return jobOf(profileData(path(name), target, std::nullopt));
  }

  // Returns the message of the error of this code.
  static std::string mistakeOf(ErrorCode code, const std::function<void()>& action) {
    try {
      action();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.message();
      return error.message();
    }
    ADD_FAILURE() << "no error";
    return "";
  }

  testing::TemporaryFolder folder_;
  JobFile file_;
};

}  // namespace dtf::launcher
