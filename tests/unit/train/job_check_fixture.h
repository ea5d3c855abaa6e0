#pragma once

// Jobs in files of a temporary folder, checked as by dtf-launch before it starts tasks.

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/cluster/cluster_yaml.h"
#include "common/train/job_check.h"
#include "tests/support/temporary_files.h"
#include "tests/support/train_file.h"
#include "tests/unit/data/idx_files.h"

namespace dtf::train {

inline constexpr uint64_t kGiB = uint64_t{1} << 30;
inline constexpr HostMemory kHost{16 * kGiB, 8 * kGiB};

inline std::string firstLine(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

class JobCheckTest : public ::testing::Test {
 protected:
  // Returns the message of the mistakes in c.yaml with this train section; empty: none.
  std::string mistakesOf(const std::string& train, ErrorCode code = ErrorCode::kBadConfig,
                         const HostMemory& memory = kHost) {
    return mistakesIn("cluster: {ps: [a:1, a:2], worker: [b:1, b:2]}\ntrain:\n" + train, code,
                      memory);
  }

  std::string mistakesIn(const std::string& file, ErrorCode code, const HostMemory& memory = kHost,
                         const std::vector<std::string>& overrides = {}) {
    files_.write("c.yaml", file);
    yaml::Report report;
    try {
      const cluster::JobSpec job = cluster::loadCluster("c.yaml", overrides, report);
      size_ = checkJob(job, {memory, runs_here_}, report);
      warnings_ = report.warnings();
      report.throwIfAny();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.message();
      return error.message();
    }
    return {};
  }

  void writeImages(const std::string& name, uint32_t count, uint32_t side) {
    files_.write(name, data::idxHeader(data::kImagesMagic, {count, side, side}) +
                           std::string(size_t{count} * side * side, 'x'));
  }
  void writeLabels(const std::string& name, uint32_t count, char label) {
    files_.write(name, data::idxHeader(data::kLabelsMagic, {count}) + std::string(count, label));
  }

  testing::TemporaryFiles files_;
  std::optional<JobSize> size_;
  std::function<bool(const cluster::Address&)> runs_here_;
  std::string warnings_;
};

inline constexpr const char* kSoftmax =
    "  model: {input: {shape: [28, 28, 1]}, layers: [flatten, dense: {units: 10}], loss: mse}\n";
// The bytes of a batch of 100.
inline constexpr uint64_t kOutputBytes = uint64_t{100} * 10 * 4;

}  // namespace dtf::train
