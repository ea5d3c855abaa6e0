// What training is for: accuracy on the real MNIST. Skipped with a reason where the files are not
// there.

#include <cstdlib>
#include <filesystem>

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

  // Trains a job file of configs/jobs on 2 ps + 2 workers and returns the test accuracy.
  double accuracyOf(const std::string& job, std::vector<std::string> more) {
    const std::string folder = mnistFolder();
    const std::string root = std::getenv("DTF_SOURCE_ROOT");
    std::vector<std::string> arguments = {"--run-dir", folder_.path() + "/runs/job", "--set",
                                          "train=" + root + "/configs/jobs/" + job};
    for (const std::string key :
         {"train.images=train-images-idx3", "train.labels=train-labels-idx1",
          "eval.images=t10k-images-idx3", "eval.labels=t10k-labels-idx1"}) {
      const size_t equals = key.find('=');
      arguments.insert(arguments.end(),
                       {"--set", "train.data." + key.substr(0, equals) + "=" + folder + "/" +
                                     key.substr(equals + 1) + "-ubyte.gz"});
    }
    for (const std::string& text : more) arguments.insert(arguments.end(), {"--set", text});
    const ProcessResult result =
        launch(root + "/configs/clusters/local-sync.yaml", arguments, seconds(400));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    if (result.exit_code != 0) return 0;
    return summary()["eval"]["accuracy"].get<double>();
  }
};

TEST_F(LearnsTest, SoftmaxRegressionReaches92PercentAsyncAndSync) {
  if (mnistFolder().empty()) GTEST_SKIP() << "no MNIST: run scripts/fetch-mnist.sh";
  EXPECT_GE(accuracyOf("mnist_softmax.yaml", {"train.replication={mode: async}"}), 0.92);
  EXPECT_GE(
      accuracyOf("mnist_softmax.yaml", {"train.replication={mode: sync}", "train.steps=6000"}),
      0.92);
}

TEST_F(LearnsTest, APerceptronWithTwoHiddenLayersReaches98Percent) {
  if (mnistFolder().empty()) GTEST_SKIP() << "no MNIST: run scripts/fetch-mnist.sh";
  EXPECT_GE(accuracyOf("mnist_mlp.yaml", {}), 0.98);
}

}  // namespace dtf::testing
