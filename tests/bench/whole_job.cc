#include "tests/bench/whole_job.h"

#include <fmt/core.h>

#include <chrono>

#include "common/base/error.h"
#include "common/base/json.h"
#include "tests/bench/child.h"
#include "tests/support/process.h"

namespace dtf::bench {

Json runJob(const std::function<std::string(const std::string& folder)>& cluster_text) {
  const testing::TemporaryFolder folder;
  const std::string file = folder.write("bench.yaml", cluster_text(folder.path()));
  const testing::ProcessResult result =
      testing::runProcess({buildProgram("launcher/dtf-launch"), file}, std::chrono::seconds(300));
  if (result.exit_code != 0)
    throw Error(ErrorCode::kInternal,
                fmt::format("dtf-launch exited with {}:\n{}", result.exit_code, result.err));
  return Json::parse(folder.read("runs/summary.json"));
}

namespace {

constexpr JobModel kJobModels[] = {
    {"784-10 b100", "flatten: , dense: {units: 10}", 20000},
    {"784-300-100-10 b100",
     "flatten: , dense: {units: 300, activation: relu}, dense: {units: 100, activation: relu}, "
     "dense: {units: 10}",
     2000},
    {"784-2048-1024-10 b100",
     "flatten: , dense: {units: 2048, activation: relu}, dense: {units: 1024, activation: relu}, "
     "dense: {units: 10}",
     150},
    {"LeNet b100",
     "conv2d: {filters: 32, kernel_size: 5, padding: same, activation: relu}, max_pooling2d: "
     "{pool_size: 2}, "
     "conv2d: {filters: 64, kernel_size: 5, padding: same, activation: relu}, max_pooling2d: "
     "{pool_size: 2}, "
     "flatten: , dense: {units: 1024, activation: relu}, dense: {units: 10}",
     60},
};

std::string repeated(const char* text, uint32_t count) {
  std::string all;
  for (uint32_t i = 0; i < count; ++i) all += (i == 0 ? "" : ", ") + std::string(text);
  return all;
}

}  // namespace

std::span<const JobModel> jobModels() {
  return kJobModels;
}

double stepsPerSecond(const JobModel& model, const JobShape& shape, uint64_t steps) {
  const std::string ps =
      shape.ps == 0 ? "" : fmt::format("  ps: [{}]\n", repeated("\"localhost:auto\"", shape.ps));
  const Json summary = runJob([&](const std::string& folder) {
    return fmt::format(
        "job: bench\nrun_dir: {}/runs\nshared_memory: {}\nstream_gradients: {}\ncluster:\n{}  "
        "worker: [{}]\n"
        "train:\n  model:\n    input: {{shape: [28, 28, 1]}}\n    layers: [{}]\n"
        "    loss: sparse_categorical_crossentropy\n"
        "  data: {{train: {{format: digits, count: 10000}}, batch_size: {}, seed: 1}}\n"
        "  optimizer: {{momentum: {{learning_rate: 0.001}}}}\n"
        "  replication: {}\n  steps: {}\n  checkpoint: none\n",
        folder, shape.shared_memory, shape.stream_gradients, ps,
        repeated("{address: \"localhost:auto\", threads: 1}", shape.workers), model.layers,
        model.batch_size, shape.replication, steps);
  });
  return summary["steps_per_second"].asDouble();
}

Report besideEachOther(const BenchOptions& options, const std::string& table,
                       const std::string& second_name, const JobShape& first,
                       const JobShape& second) {
  Report report(table, {"steps/s", second_name, "ratio"});
  for (const JobModel& model : jobModels()) {
    if (!std::string(model.name).starts_with(options.only)) continue;
    const uint64_t steps = options.quick ? model.quickSteps() : model.steps;
    std::vector<double> firsts, seconds, ratios;
    for (int turn = 0; turn < options.repetitions; ++turn) {
      firsts.push_back(stepsPerSecond(model, first, steps));
      seconds.push_back(stepsPerSecond(model, second, steps));
      ratios.push_back(seconds.back() / firsts.back());
    }
    report.add(model.name, {median(firsts), median(seconds), median(ratios)});
  }
  return report;
}

}  // namespace dtf::bench
