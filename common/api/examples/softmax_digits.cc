// A softmax classifier with an optimizer of the library, checkpoints, and a run that goes on: the
// variables and their slots are on ps/0, the loss on worker/0. The images are drawn here, 28 x 28
// pixels as of MNIST; the classes are the bands of rows that are lit.
// Usage: softmax_digits FOLDER STEPS [dtf://WORKER]     without a target: in this process

#include <dtf/saver.h>

#include <cstdio>
#include <cstdlib>
#include <random>

namespace {

constexpr int64_t kBatch = 50, kSide = 28, kClasses = 10, kPixels = kSide * kSide;

// The batch of a step is a function of the step, so a run that goes on sees the same ones.
struct Batch {
  dtf::Tensor images{DTF_FLOAT32, {kBatch, kPixels}};
  dtf::Tensor labels{DTF_INT32, {kBatch}};

  explicit Batch(int64_t step) {
    std::mt19937 random(static_cast<uint32_t>(step));
    const auto pixels = images.as<float>();
    for (size_t i = 0; i < kBatch; ++i) {
      const size_t band = random() % kClasses;
      labels.as<int32_t>()[i] = static_cast<int32_t>(band);
      for (size_t row = 0; row < kSide; ++row)
        for (size_t column = 0; column < kSide; ++column)
          pixels[(i * kSide + row) * kSide + column] =
              static_cast<float>(random() % 100 + (row / 2 == band ? 120 : 0)) / 255;
    }
  }
};

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3 && argc != 4)
    throw dtf::Error(DTF_USAGE, "usage: softmax_digits FOLDER STEPS [dtf://WORKER]");
  const std::vector<std::string> targets(argv + 3, argv + argc);
  const std::string on_ps = targets.empty() ? "" : "/job:ps/task:0";

  dtf::Graph graph;
  dtf::Output weights, biases;
  {
    const auto there = graph.device(on_ps);
    weights = graph.variable("softmax/weights", {kPixels, kClasses}, "glorot_uniform");
    biases = graph.variable("softmax/biases", {kClasses});
  }
  const dtf::Output images = graph.placeholder("images", DTF_FLOAT32, {kBatch, kPixels});
  const dtf::Output labels = graph.placeholder("labels", DTF_INT32, {kBatch});
  const dtf::Output logits = graph.biasAdd(graph.matMul(images, weights), biases);
  const dtf::Output loss =
      graph.mean(graph.op("SparseSoftmaxCrossEntropyWithLogits", {logits, labels}));
  const dtf::Output accuracy = graph.op("Accuracy", {logits, labels});
  const dtf::Minimized training =
      graph.minimize(loss, dtf::Adam{.learning_rate = dtf::exponentialDecay(0.01, 100, 0.9)},
                     {.clip_by_global_norm = 5});

  dtf::Session session(graph, targets);
  dtf::Saver saver({.max_to_keep = 3});
  int64_t step = 0;
  if (const std::string newest = saver.latestCheckpoint(argv[1]); !newest.empty()) {
    step = static_cast<int64_t>(saver.restore(session, newest));
    std::printf("going on from %s\n", newest.c_str());
  } else {
    session.initialize(1);
  }
  const std::vector<std::string> fetches = {graph.name(training.train), graph.name(loss),
                                            graph.name(accuracy)};
  while (step < std::atoi(argv[2])) {
    const Batch batch(step);
    const auto values = session.run({{"images", batch.images}, {"labels", batch.labels}}, fetches);
    step = values[0].as<int64_t>()[0];
    if (step % 50 == 0)
      std::printf("step %d: loss %.4f, accuracy %.2f\n", static_cast<int>(step),
                  values[1].as<float>()[0], values[2].as<float>()[0]);
  }
  std::printf("saved %s\n", saver.save(session, argv[1]).c_str());
} catch (const dtf::Error& error) {
  std::fprintf(stderr, "softmax_digits: error: %s\n", error.what());
  return error.code();
}
