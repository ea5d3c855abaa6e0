// Synchronous training by several programs: each is one of N workers, computes the gradient of its
// own examples, and all take the step together, with the mean. Worker 0 is the chief: it
// initialises, saves and restores. Any program, and any ps, may be killed and started again.
//
//   sync_replicas RANK WORKERS STEPS LOG_DIR dtf://PS0 dtf://PS1 [dtf://WORKER]
//
// Half of the weights are on each ps. The examples of a step follow from the global step and the
// rank alone, so a run that was disturbed ends with the same weights as one that was not: the
// chief prints a checksum of them.

#include <dtf/supervisor.h>
#include <dtf/sync_replicas.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int64_t kExamples = 16, kColumns = 8;

// A number from -1 to 1 that follows from its arguments.
float drawn(int64_t step, int64_t rank, int64_t place) {
  uint64_t x = static_cast<uint64_t>(step * 1000003 + rank * 10007 + place) * 0x9E3779B97F4A7C15;
  x ^= x >> 31;
  x *= 0xBF58476D1CE4E5B9;
  return static_cast<float>(static_cast<double>(x >> 11) * 0x1p-52 - 1);
}

struct Batch {
  dtf::Tensor xs{DTF_FLOAT32, {kExamples, kColumns}}, ys{DTF_FLOAT32, {kExamples, 1}};
};

// y = x0 - 2 x1 + 3 x2 ..
Batch batchOf(int64_t step, int64_t rank) {
  Batch batch;
  for (int64_t row = 0; row < kExamples; ++row) {
    float y = 0;
    for (int64_t column = 0; column < kColumns; ++column) {
      const int64_t place = row * kColumns + column;
      const float x = drawn(step, rank, place);
      batch.xs.as<float>()[static_cast<size_t>(place)] = x;
      y += x * static_cast<float>((column + 1) * (column % 2 == 0 ? 1 : -1));
    }
    batch.ys.as<float>()[static_cast<size_t>(row)] = y;
  }
  return batch;
}

void run(int64_t rank, int64_t workers, int64_t steps, const std::string& log_dir,
         const std::vector<std::string>& targets) {
  dtf::Graph graph;
  const dtf::Output xs = graph.placeholder("x", DTF_FLOAT32, {kExamples, kColumns});
  const dtf::Output ys = graph.placeholder("y", DTF_FLOAT32, {kExamples, 1});
  dtf::Output w, b;
  {
    const auto there = graph.device("/job:ps/task:0");
    w = graph.variable("w", {kColumns, 1}, "glorot_uniform");
  }
  {
    const auto there = graph.device("/job:ps/task:1");
    b = graph.variable("b", {1, 1}, "zeros");
  }
  const dtf::Output error = graph.sub(graph.add(graph.matMul(xs, w), b), ys);
  const dtf::Output loss = graph.mean(graph.mul(error, error));
  const dtf::SyncMinimized training =
      dtf::syncReplicas(dtf::Adam{.learning_rate = 0.05},
                        {.replicas_to_aggregate = workers, .rank = rank})
          .minimize(graph, loss);

  dtf::Supervisor supervisor({.is_chief = rank == 0,
                              .task = "worker/" + std::to_string(rank),
                              .log_dir = log_dir,
                              .seed = 1,
                              .save_seconds = 0.2,
                              .summary_seconds = 0.2,
                              .poll_seconds = 0.1,
                              .summaries = {graph.name(loss)},
                              .handle_signals = true});
  supervisor.prepareOrWaitForSession(graph, targets);
  int64_t step = supervisor.globalStep();
  std::printf("worker %d begins at step %d\n", static_cast<int>(rank), static_cast<int>(step));
  std::fflush(stdout);
  // The chief ends the run. Until then the others stay: if a ps is lost between the last step and
  // its checkpoint, the chief goes back, and needs their gradients again.
  while (!supervisor.shouldStop() && (rank != 0 || step < steps)) {
    const Batch batch = batchOf(step, rank);
    const dtf::RunResult result = supervisor.run({{"x", batch.xs}, {"y", batch.ys}},
                                                 {graph.name(training.train), graph.name(loss)});
    if (result.recovered) {
      step = supervisor.globalStep();
      std::printf("worker %d goes on from step %d\n", static_cast<int>(rank),
                  static_cast<int>(step));
      std::fflush(stdout);
      continue;
    }
    step = result.values[0].as<int64_t>()[0];
  }
  if (rank == 0) {
    uint64_t hash = 0xcbf29ce484222325;
    dtf::RunResult last = supervisor.run({}, {"w", "b", "w/Adam_1"});
    for (int tries = 1; last.recovered; ++tries) {
      if (tries == 10) throw dtf::Error(DTF_UNAVAILABLE, "the tasks were lost 10 times in a row");
      last = supervisor.run({}, {"w", "b", "w/Adam_1"});
    }
    for (const dtf::Tensor& value : last.values)
      for (const float number : value.as<float>()) {
        uint32_t bits = 0;
        std::memcpy(&bits, &number, sizeof(bits));
        hash = (hash ^ bits) * 0x100000001b3;
      }
    std::printf("step %d: w = %.3f %.3f .., checksum %016llx\n", static_cast<int>(step),
                last.values[0].as<float>()[0], last.values[0].as<float>()[1],
                static_cast<unsigned long long>(hash));
  }
  supervisor.stop();
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 7)
    throw dtf::Error(DTF_USAGE,
                     "usage: sync_replicas RANK WORKERS STEPS LOG_DIR dtf://PS0 dtf://PS1 "
                     "[dtf://WORKER]");
  // The first target computes; without a worker that is ps/0.
  std::vector<std::string> targets(argv + 5, argv + argc);
  if (targets.size() > 2) std::swap(targets.front(), targets.back());
  run(std::atoll(argv[1]), std::atoll(argv[2]), std::atoll(argv[3]), argv[4], targets);
} catch (const dtf::Error& error) {
  std::fprintf(stderr, "sync_replicas: error: %s\n", error.what());
  return error.code();
}
