// `kernels: timed`: the chief's choice is kept in the run's folder and holds for all.

#include <filesystem>

#include "common/base/json.h"
#include "tests/e2e/cluster_fixture.h"

namespace dtf::testing {

using std::chrono::seconds;

class KernelsTest : public ClusterTest {
 protected:
  // The second layer can be computed in ways that round differently.
  static ClusterOptions options() {
    ClusterOptions options;
    options.mode = "sync";
    options.layers =
        "[conv2d: {filters: 16, kernel_size: 3, strides: 4}, conv2d: {filters: 16, kernel_size: 3, "
        "padding: "
        "same}, flatten: , dense: {units: 10}]";
    options.train_more = "  kernels: timed\n  checkpoint: {every_steps: 20}\n";
    return options;
  }

  Json kernels(const std::string& name) const {
    return Json::parse(folder_.read("runs/" + name + "/kernels.json"));
  }

  // Writes the choices of a run in which every convolution that supports `way` uses it.
  void choose(const std::string& name, Json kernels, const std::string& way) const {
    Json chosen = Json::object();
    for (const auto& [convolution, before] : kernels["convolutions"].members())
      chosen[convolution] =
          convolution.find("x16 3x3 s1x1") == std::string::npos ? "gathered" : way;
    kernels["convolutions"] = chosen;
    std::filesystem::create_directories(folder_.path() + "/runs/" + name);
    folder_.write("runs/" + name + "/kernels.json", kernels.dump());
  }
};

TEST_F(KernelsTest, ARunGoesTheWaysThatItsFileSays) {
  ASSERT_EQ(launch(writeCluster(options(), "first")).exit_code, 0);
  const Json first = kernels("first");
  // Two layers, but the gradient of the images is not needed.
  EXPECT_EQ(first["convolutions"].size(), 5u) << first;
  const auto digest_of = [this](const std::string& name) {
    const ProcessResult result = launch(writeCluster(options(), name));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return summary(name)["parameters_digest"];
  };
  choose("gathered", first, "gathered");
  choose("winograd", first, "winograd");
  const Json gathered = digest_of("gathered");
  EXPECT_NE(gathered, digest_of("winograd")) << "they round differently";
  choose("again", first, "gathered");
  EXPECT_EQ(gathered, digest_of("again"));

  // Verbs that use the trained model use the run's kernels, too.
  const ProcessResult eval =
      runProcess({binary("dtf-launch"), "eval", "--json", folder_.path() + "/gathered.yaml"});
  ASSERT_EQ(eval.exit_code, 0) << eval.err;
  EXPECT_EQ(Json::parse(eval.out)["loss"], summary("gathered")["eval"]["loss"]);
  const ProcessResult explain =
      runProcess({binary("dtf-launch"), "explain", folder_.path() + "/winograd.yaml"});
  EXPECT_NE(explain.out.find("winograd  Conv2D\n"), std::string::npos) << explain.out;
  EXPECT_NE(explain.out.find("convolutions are chosen by timing, kept in"), std::string::npos);
}

// By hand, from folders of their own.
TEST_F(KernelsTest, WorkersThatChoseDifferentlyAreRefused) {
  ClusterOptions apart = options();
  apart.ps = 1;
  apart.train_more = "  kernels: timed\n";
  apart.ports = freePorts(3);
  const std::string file = writeCluster(apart);
  ASSERT_EQ(launch(file).exit_code, 0);
  choose("chief", kernels("job"), "gathered");
  choose("other", kernels("job"), "winograd");
  Process ps = startTask(file, "ps", 0);
  Process chief = startTask(file, "worker", 0, {"--run-dir", folder_.path() + "/runs/chief"});
  Process other = startTask(file, "worker", 1, {"--run-dir", folder_.path() + "/runs/other"});
  // Either may declare last.
  const ProcessResult results[] = {chief.wait(seconds(60)), other.wait(seconds(60))};
  const bool chief_refused = results[0].exit_code == 78;
  const ProcessResult& refused = results[chief_refused ? 0 : 1];
  EXPECT_EQ(refused.exit_code, 78) << results[0].err << results[1].err;
  EXPECT_NE(refused.err.find("kernels is "), std::string::npos) << refused.err;
}

}  // namespace dtf::testing
