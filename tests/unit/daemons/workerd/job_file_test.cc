#include "daemons/workerd/job_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "common/base/file.h"
#include "tests/support/temporary_files.h"
#include "tests/support/train_file.h"

namespace dtf::workerd {
namespace {

TEST(JobFile, HasTheVersionTheFingerprintsAndTheFile) {
  const testing::TemporaryFiles files;
  files.write(
      "train.yaml",
      "model: {input: {shape: [28, 28, 1]}, layers: [flatten, dense: {units: 10}], loss: "
      "mse}\ndata: {train: {format: digits, count: 200}, eval: {format: digits, count: 20}}\n");
  const JobData data = openJobData(testing::readTrainFile("train.yaml"), true, [](auto&) {});
  cluster::JobSpec job;
  job.run_dir = ".";
  job.text = "job: j\n";
  arena::ModelDeclaration declaration;
  declaration.settings = {{"data.train: content", "1f3a"}};
  writeJobFile(job, data, declaration);
  const std::string text = readFile("job.yaml", 1 << 20);
  for (const char* line :
       {"# dtf " DTF_VERSION, "# data.eval: 20 examples of [28, 28, 1], content ",
        "# data.train: content: 1f3a\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  EXPECT_TRUE(text.ends_with("\njob: j\n")) << text;
}

TEST(JobFile, ADiskThatTakesNothingCostsTheJobNothing) {
  const testing::TemporaryFiles files;
  cluster::JobSpec job;
  job.run_dir = "nowhere";
  writeJobFile(job, {}, {});
  EXPECT_FALSE(std::filesystem::exists("nowhere"));
}

}  // namespace
}  // namespace dtf::workerd
