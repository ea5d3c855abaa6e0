// Accuracy of trained networks, on the real MNIST where its files are, else on the digits that dtf
// draws. With DTF_WHOLE_TRAINING (test.sh --all) each job trains to the end and to the figure in
// its name. Otherwise it trains only long enough to show that the network learns, one network per
// kind of kernel: training takes most of the processor time of all end-to-end tests.

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "common/base/json.h"
#include "tests/e2e/cluster_fixture.h"

namespace dtf::testing {

namespace fs = std::filesystem;
using std::chrono::seconds;

class LearnsTest : public ClusterTest {
 protected:
  // DTF_MNIST_DIR, or data/mnist or shared/data/mnist in the source folder or above it.
  static std::string mnistFolder() {
    const auto holds = [](const fs::path& folder) {
      return fs::exists(folder / "t10k-images-idx3-ubyte.gz");
    };
    if (const char* given = std::getenv("DTF_MNIST_DIR"); given != nullptr && holds(given))
      return given;
    const char* source = std::getenv("DTF_SOURCE_ROOT");
    for (fs::path at = source == nullptr ? "." : source; !at.empty(); at = at.parent_path()) {
      for (const char* below : {"data/mnist", "shared/data/mnist"})
        if (holds(at / below)) return at / below;
      if (at == at.parent_path()) break;
    }
    return "";
  }

  // Settings that put the data of the files' jobs in their place.
  static std::vector<std::string> dataSettings() {
    const std::string folder = mnistFolder();
    if (folder.empty())
      return {"train.data.train={format: digits, count: 10000}",
              "train.data.eval={format: digits, count: 2000}"};
    const auto files = [&folder](const std::string& which) {
      return "{format: idx, images: " + folder + "/" + which +
             "-images-idx3-ubyte.gz, labels: " + folder + "/" + which + "-labels-idx1-ubyte.gz}";
    };
    return {"train.data.train=" + files("train"), "train.data.eval=" + files("t10k")};
  }

  // Reason to skip a test that only scripts/test.sh --all runs.
  static constexpr const char* kWholeOnly =
      "trained by scripts/test.sh --all, or with DTF_WHOLE_TRAINING=1";

  static bool isWhole() { return std::getenv("DTF_WHOLE_TRAINING") != nullptr; }

  // Trains a job file of configs/jobs on 2 ps + 2 workers and returns its last evaluation.
  Json evaluationOf(const std::string& job, const std::vector<std::string>& settings) {
    const std::string root = std::getenv("DTF_SOURCE_ROOT");
    std::vector<std::string> arguments = {"--fresh", "--run-dir", folder_.path() + "/runs/job",
                                          "--set", "train=" + root + "/configs/jobs/" + job};
    for (const std::string& setting : settings)
      arguments.insert(arguments.end(), {"--set", setting});
    const ProcessResult result =
        launch(root + "/configs/clusters/local-sync.yaml", arguments, seconds(400));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.exit_code == 0 ? summary()["eval"] : Json{{"accuracy", 0.0}};
  }

  // The accuracy of a job on images.
  double accuracyOf(const std::string& job, const std::vector<std::string>& more) {
    std::vector<std::string> settings = dataSettings();
    settings.insert(settings.end(), more.begin(), more.end());
    const double accuracy = evaluationOf(job, settings)["accuracy"].asDouble();
    std::printf("%s on %s: accuracy %.4f\n", job.c_str(),
                mnistFolder().empty() ? "digits" : "MNIST", accuracy);
    return accuracy;
  }
};

TEST_F(LearnsTest, SoftmaxRegressionReaches92PercentAsyncAndSync) {
  if (!isWhole()) {
    for (const char* mode : {"async", "sync"})
      EXPECT_GE(accuracyOf("mnist_softmax.yaml",
                           {std::string("train.replication.mode=") + mode, "train.steps=500"}),
                0.8);
    return;
  }
  const double least = mnistFolder().empty() ? 0.90 : 0.92;
  EXPECT_GE(accuracyOf("mnist_softmax.yaml", {"train.replication={mode: async}"}), least);
  EXPECT_GE(
      accuracyOf("mnist_softmax.yaml", {"train.replication={mode: sync}", "train.steps=6000"}),
      least);
}

TEST_F(LearnsTest, APerceptronWithTwoHiddenLayersReaches98Percent) {
  if (!isWhole()) GTEST_SKIP() << kWholeOnly;
  EXPECT_GE(accuracyOf("mnist_mlp.yaml", {}), 0.98);
}

TEST_F(LearnsTest, AConvolutionalNetworkIsBetterThanAPerceptron) {
  if (!isWhole()) {
    EXPECT_GE(accuracyOf("mnist_lenet.yaml", {"train.steps=100"}), 0.93);
    return;
  }
  const double least = mnistFolder().empty() ? 0.99 : 0.992;
  EXPECT_GE(accuracyOf("mnist_lenet.yaml", {}), least);
  // In async mode a step is one worker's gradient, in sync mode one of both.
  EXPECT_GE(accuracyOf("mnist_lenet.yaml", {"train.replication={mode: async}", "train.steps=6000"}),
            least);
}

// Two whole trainings differ by 0.2 % of the test images anyway.
TEST_F(LearnsTest, WinogradsConvolutionsCostNoAccuracy) {
  std::vector<std::string> steps;
  if (!isWhole()) steps = {"train.steps=20"};
  const double with = accuracyOf("mnist_lenet.yaml", steps);
  const std::string digest = summary().stringAt("parameters_digest");
  ::setenv("DTF_WINOGRAD", "0", 1);
  const double without = accuracyOf("mnist_lenet.yaml", steps);
  ::unsetenv("DTF_WINOGRAD");
  EXPECT_NE(digest, summary()["parameters_digest"]) << "both were trained by the same kernels";
  EXPECT_NEAR(with, without, isWhole() ? 0.002 : 0.05);
}

TEST_F(LearnsTest, TenThousandClassesAreLearnt) {
  if (!isWhole()) GTEST_SKIP() << kWholeOnly;
  const Json evaluation = evaluationOf("many_classes.yaml", {});
  std::printf("10 000 classes: %s\n", evaluation.dump().c_str());
  EXPECT_GT(evaluation["accuracy"].asDouble(), 0.95);
  EXPECT_GT(evaluation.doubleOr("sparse_top_5_categorical_accuracy", 0.0), 0.98);
}

// Its variables are on the ps that it names; eval reads them without a cluster.
TEST_F(LearnsTest, ANetworkWrittenOpByOpIsTrained) {
  EXPECT_GE(accuracyOf("digits_graph.yaml", {}), mnistFolder().empty() ? 0.95 : 0.94);
}

// Rows of an image as the steps of a sequence.
TEST_F(LearnsTest, AnLstmReaches97Percent) {
  if (!isWhole()) GTEST_SKIP() << kWholeOnly;
  EXPECT_GE(accuracyOf("digits_lstm.yaml", {"train.steps=1500"}), 0.97);
}

}  // namespace dtf::testing
