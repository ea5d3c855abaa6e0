#include "common/train/device_check.h"

#include <gtest/gtest.h>

#include "common/cluster/cluster_yaml.h"
#include "tests/support/temporary_files.h"

namespace dtf::train {
namespace {

// What is said of two workers of which the second has gpu:1.
std::string mistakes(const Host& host, const std::string& more = "") {
  testing::TemporaryFiles files;
  files.write(
      "c.yaml",
      "cluster:\n  ps: [a:1]\n  worker:\n    - b:1\n"
      "    - {address: c:1, devices: [gpu:1]" +
          more +
          "}\n"
          "train: {model: {input: {shape: [2]}, layers: [dense: {units: 2}], loss: mse}}\n");
  yaml::Report report;
  const cluster::JobSpec job = cluster::loadCluster("c.yaml", {}, report);
  checkDevices(job, host, report);
  try {
    report.throwIfAny();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
    return error.message();
  }
  return "";
}

TEST(DeviceCheckTest, NamesTheLineOfTheTaskWhoseHostLacksADevice) {
  Host host;
  std::vector<std::string> asked;
  host.missing = [&asked](const std::string& device) {
    asked.push_back(device);
    return device == "gpu:1" ? "There is no device gpu:1." : "";
  };
  EXPECT_EQ(mistakes(host).find("c.yaml:5:7: error: There is no device gpu:1.\n"), 0u);
  EXPECT_EQ(asked, (std::vector<std::string>{"cpu:0", "gpu:1"}));
}

TEST(DeviceCheckTest, LooksAtTasksOfThisHostAlone) {
  Host host;
  host.missing = [](const std::string&) { return "missing"; };
  host.runs = [](const cluster::Address&) { return false; };
  EXPECT_EQ(mistakes(host), "");
  EXPECT_EQ(mistakes({}), "");
}

TEST(DeviceCheckTest, LeavesATaskAloneWhoseEnvironmentDecides) {
  Host host;
  host.missing = [](const std::string&) { return "missing"; };
  EXPECT_NE(mistakes(host), "");
  EXPECT_EQ(mistakes(host, ", env: {CUDA_VISIBLE_DEVICES: \"1\"}").find("gpu:1"),
            std::string::npos);
}

}  // namespace
}  // namespace dtf::train
