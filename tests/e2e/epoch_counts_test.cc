// Each example counts as often as the job has epochs, whatever else the job's file says: mode,
// tasks, devices, durability, transfers, a part of the data that is evaluated, and a loss of all
// workers in the middle of an epoch. The examples tell it themselves: example i alone moves weight
// i. Real processes; "GPUs" are the plug-in of tests/gpu.

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <sstream>

#include "common/base/random.h"
#include "tests/e2e/cluster_fixture.h"
#include "tests/support/repetitions.h"
#include "tests/support/test_seed.h"
#include "tests/unit/data/npy_files.h"

namespace dtf::testing {

using std::chrono::seconds;

namespace {

constexpr double kRate = 1e-4;

// What one job's file says.
struct CountedJob {
  uint32_t ps = 0;
  uint32_t workers = 1;
  uint32_t towers = 1;
  bool gpu = false;
  std::string mode = "async";
  uint32_t aggregate = 0;  // 0: not said
  bool overlap = false;
  bool bfloat16 = false;
  std::string durability;  // empty: not said
  bool shared_memory = true;
  double eval_split = 0;
  bool is_hurt = false;  // every worker is killed in its fourth step, and the job started again
  size_t examples = 5;
  size_t batch = 3;
  uint64_t epochs = 3;

  bool isSync() const { return mode == "sync"; }
  // Examples of a whole step, of so many that are trained on.
  size_t step(size_t trained) const {
    return std::min(trained, batch * (isSync() ? std::max(workers, aggregate) : 1));
  }
  std::string text() const {
    return fmt::format(
        "{} ps, {} workers with {} {}, {}{}{}{}, durability {}, {} shared memory, {} "
        "examples{}, batches of {}, {} epochs{}",
        ps, workers, towers, gpu ? "GPUs" : "CPUs", mode,
        aggregate > 0 ? fmt::format(" of {}", aggregate) : "", overlap ? ", overlap" : "",
        bfloat16 ? ", bfloat16" : "", durability.empty() ? "as it is" : durability,
        shared_memory ? "with" : "without", examples, eval_split > 0 ? ", some to evaluate" : "",
        batch, epochs, is_hurt ? ", killed and resumed" : "");
  }
};

template <class T>
T oneOf(Random& random, const std::vector<T>& values) {
  return values[random.below(values.size())];
}

// Only what a file may say together.
CountedJob drawJob(Random& random) {
  CountedJob job;
  job.ps = oneOf<uint32_t>(random, {0, 0, 1, 2, 2});
  job.workers = job.ps == 0 ? 1 : oneOf<uint32_t>(random, {1, 2, 3});
  job.towers = oneOf<uint32_t>(random, {1, 1, 2});
  job.gpu = random.below(3) == 0;
  job.mode = oneOf<std::string>(random, {"async", "bounded", "sync", "sync"});
  if (job.isSync() && random.below(3) == 0)
    job.aggregate = job.workers + 1 + static_cast<uint32_t>(random.below(2));
  job.overlap = job.ps > 0 && !job.isSync() && random.below(2) == 0;
  job.bfloat16 = job.ps > 0 && random.below(3) == 0;
  if (job.ps > 1) job.durability = oneOf<std::string>(random, {"", "replica"});
  if (job.ps > 0 && job.durability.empty() && random.below(3) == 0)
    job.durability = "{snapshot: {every_steps: 2}}";
  job.shared_memory = random.below(2) == 0;
  if (random.below(3) == 0) job.eval_split = 0.25;
  job.is_hurt = random.below(2) == 0;
  job.examples = 5 + random.below(9);
  job.batch = job.towers * (1 + random.below(4));
  job.epochs = 2 + random.below(5);
  return job;
}

class EpochCountsTest : public ClusterTest {
 protected:
  EpochCountsTest() {
    const std::string plugin =
        std::string(std::getenv("DTF_BUILD_ROOT")) + "/tests/gpu/libdtf_host_plugin.so";
    ::setenv("DTF_GPU_PLUGIN", plugin.c_str(), 1);
    ::setenv("DTF_TEST_HOST_DEVICES", "2", 1);
  }
  ~EpochCountsTest() override {
    ::unsetenv("DTF_GPU_PLUGIN");
    ::unsetenv("DTF_TEST_HOST_DEVICES");
  }

  std::string write(const CountedJob& job, const std::string& name) {
    const size_t count = job.examples;
    std::vector<float> features(count * count);
    for (size_t i = 0; i < count; ++i) features[i * count + i] = 1;
    folder_.write(name + "-x.npy", data::npyOf("<f4", fmt::format("({0}, {0})", count), features));
    folder_.write(name + "-y.npy",
                  data::npyOf("<f4", fmt::format("({},)", count), std::vector<float>(count, 1)));
    std::vector<std::string> devices;
    for (uint32_t i = 0; i < job.towers; ++i)
      devices.push_back(fmt::format("{}:{}", job.gpu ? "gpu" : "cpu", i));
    const std::string worker =
        fmt::format("{{address: \"localhost:auto\", devices: [{}]}}", fmt::join(devices, ", "));
    const std::vector<std::string> ps(job.ps, "localhost:auto"), workers(job.workers, worker);
    std::string text =
        fmt::format("job: {0}\nrun_dir: {1}/runs/{0}\ncluster:\n", name, folder_.path());
    if (job.ps > 0) text += fmt::format("  ps: [{}]\n", fmt::join(ps, ", "));
    text +=
        fmt::format("  worker: [{}]\nlaunch: {{restarts: {{max: 0}}}}\n", fmt::join(workers, ", "));
    if (!job.durability.empty()) text += "durability: " + job.durability + "\n";
    if (!job.shared_memory) text += "shared_memory: false\n";
    text += fmt::format(
        "train:\n  model:\n    input: {{shape: [{}]}}\n    layers: [dense: {{units: 1, "
        "kernel_initializer: zeros}}]\n    loss: mean_squared_error\n"
        "  data:\n    train: {{format: npy, features: {}-x.npy, targets: {}-y.npy}}\n"
        "    batch_size: {}\n",
        count, name, name, job.batch);
    if (job.eval_split > 0) text += fmt::format("    eval_split: {}\n", job.eval_split);
    text += fmt::format("  optimizer: {{gradient_descent: {{learning_rate: {}}}}}\n", kRate);
    text += fmt::format(
        "  replication: {{mode: {}{}{}{}{}}}\n", job.mode,
        job.mode == "bounded" ? ", staleness: 1" : "",
        job.aggregate > 0 ? fmt::format(", replicas_to_aggregate: {}", job.aggregate) : "",
        job.overlap ? ", overlap: true" : "", job.bfloat16 ? ", transfer_dtype: bfloat16" : "");
    text += fmt::format("  epochs: {}\n  checkpoint: {{every_steps: 2}}\n", job.epochs);
    return folder_.write(name + ".yaml", text);
  }

  Json json(const std::string& verb, const std::string& name) {
    const ProcessResult result = runProcess(
        {binary("dtf-launch"), verb, folder_.path() + "/" + name + ".yaml", "--json"}, seconds(30));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return Json::parse(result.out);
  }

  // How often each example moved its weight, by what the model gives for each: its own weight and
  // the bias, which all examples move.
  std::vector<double> usesOf(const CountedJob& job, size_t trained, const std::string& name) {
    const ProcessResult predicted =
        runProcess({binary("dtf-launch"), "predict", folder_.path() + "/" + name + ".yaml",
                    "--input", folder_.path() + "/" + name + "-x.npy", "--json"},
                   seconds(30));
    EXPECT_EQ(predicted.exit_code, 0) << predicted.err;
    std::vector<double> outputs;
    std::istringstream lines(predicted.out);
    for (std::string line; std::getline(lines, line);)
      outputs.push_back(Json::parse(line)["outputs"][0].asDouble());
    const double of_use = 2 * kRate / static_cast<double>(job.step(trained));
    double all = 0;
    for (const double output : outputs) all += output / of_use;
    const double bias = all / static_cast<double>(outputs.size() + 1);
    std::vector<double> uses;
    for (const double output : outputs) uses.push_back(output / of_use - bias);
    return uses;
  }

  void train(const CountedJob& job, const std::string& name) {
    const std::string file = write(job, name);
    if (job.is_hurt) {
      Process first(launchCommand(file), {{"DTF_FAILPOINTS", "training.in_step=kill@4"}},
                    folder_.path());
      first.wait(kPatience);
      ASSERT_TRUE(everybodyGone());
    }
    const ProcessResult result = launch(file);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(summary(name)["outcome"], "done") << result.err;
    if (result.err.find("going on from the checkpoint of step ") != std::string::npos) ++resumed_;
    if (result.err.find("devices=gpu:0") != std::string::npos) ++on_gpus_;
    if (result.err.find("kept_on=gpu:0") != std::string::npos) ++kept_on_gpus_;
  }

  void expectEachCounts(const CountedJob& job, const std::string& name) {
    SCOPED_TRACE(name + ": " + job.text());
    ASSERT_NO_FATAL_FAILURE(train(job, name));
    const auto epochs = static_cast<double>(job.epochs);
    size_t evaluated = 0;
    if (job.eval_split > 0) evaluated = json("eval", name)["examples"].asUint64();
    const std::vector<double> uses = usesOf(job, job.examples - evaluated, name);
    ASSERT_EQ(uses.size(), job.examples);
    size_t unused = 0;
    for (const double use : uses) {
      if (std::abs(use) < 0.1)
        ++unused;
      else
        EXPECT_NEAR(use, epochs, 0.1) << fmt::format("{:.2f}", fmt::join(uses, ", "));
    }
    EXPECT_EQ(unused, evaluated) << fmt::format("{:.2f}", fmt::join(uses, ", "));
  }

  int resumed_ = 0, on_gpus_ = 0, kept_on_gpus_ = 0;  // jobs
};

TEST_F(EpochCountsTest, EachExampleIsUsedOnceAnEpochInEveryKindOfJob) {
  SCOPED_TRACE("DTF_TEST_SEED=" + std::to_string(testSeed()));
  Random random(testSeed());
  for (int round = 0; round < repetitions(40); ++round)
    expectEachCounts(drawJob(random), fmt::format("job{}", round));
  expectNothingLeft();
  if (kIsSanitized) return;  // fewer jobs
  EXPECT_GT(resumed_, 5);
  EXPECT_GT(on_gpus_, 5);
  EXPECT_GT(kept_on_gpus_, 1);
}

}  // namespace
}  // namespace dtf::testing
