// Trains the model of a job's file in a custom program, by its signatures: the gradients on a
// worker, the variables distributed over the ps, the update here. A second graph evaluates the same
// variables. The file's input is images of 28 x 28 bytes, as of digits; the classes are the bands
// of rows that are lit. Usage: train_model CLUSTER.yaml WORKER [PS]      dtf://host:port of a
// `workerd --serve`; the
//                                                  number of ps: 1

#include <dtf/model.h>

#include <cstdio>
#include <cstdlib>
#include <random>

namespace {

constexpr int64_t kBatch = 50, kSide = 28, kClasses = 10;

struct Batch {
  dtf::Tensor features{DTF_UINT8, {kBatch, kSide, kSide, 1}};
  dtf::Tensor labels{DTF_UINT8, {kBatch}};

  void draw(std::mt19937& random) {
    const auto pixels = features.as<uint8_t>();
    for (size_t i = 0; i < kBatch; ++i) {
      const size_t band = random() % kClasses;
      labels.as<uint8_t>()[i] = static_cast<uint8_t>(band);
      for (size_t row = 0; row < kSide; ++row)
        for (size_t column = 0; column < kSide; ++column)
          pixels[(i * kSide + row) * kSide + column] =
              static_cast<uint8_t>(random() % 100 + (row / 2 == band ? 120 : 0));
    }
  }
};

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3 && argc != 4)
    throw dtf::Error(DTF_USAGE, "usage: train_model CLUSTER.yaml dtf://WORKER [PS]");
  const std::vector<std::string> targets = {argv[2]};
  std::vector<std::string> ps;
  for (int i = 0; i < (argc == 4 ? std::atoi(argv[3]) : 1); ++i)
    ps.push_back("/job:ps/task:" + std::to_string(i));
  const dtf::Model model(argv[1], "initial");

  dtf::Graph graph;
  dtf::Signature train;
  std::vector<std::string> updates;
  {
    const auto on_worker = graph.device("/job:worker/task:0");
    train = model.addTo(graph, kBatch, "train", ps);
    for (const auto& [name, variable] : train.variables) {
      const auto average = train.outputs.find("next/" + name);
      updates.push_back(graph.name(
          average != train.outputs.end()
              ? graph.assign(variable, average->second)
              : graph.assignSub(variable, graph.scale(train.outputs.at("gradient/" + name), 0.5))));
    }
  }
  dtf::Session session(graph, targets);
  model.restore(train, session);
  const auto input = [&](const dtf::Graph& of, const dtf::Signature& signature,
                         const Batch& batch) {
    return std::vector<dtf::Feed>{{of.name(signature.inputs.at("features")), batch.features},
                                  {of.name(signature.inputs.at("labels")), batch.labels}};
  };
  std::mt19937 random(1);
  Batch batch;
  for (int step = 0; step <= 100; ++step) {
    batch.draw(random);
    const auto values =
        session.run(input(graph, train, batch), {graph.name(train.outputs.at("loss"))}, updates);
    if (step % 50 == 0) std::printf("step %d: loss %.4f\n", step, values[0].as<float>()[0]);
  }

  // Another graph and session: the variables still have the values of the first one.
  dtf::Graph evaluation;
  const auto on_worker = evaluation.device("/job:worker/task:0");
  const dtf::Signature evaluate = model.addTo(evaluation, kBatch, "evaluate", ps);
  dtf::Session judge(evaluation, targets);
  batch.draw(random);
  const auto values = judge.run(input(evaluation, evaluate, batch),
                                {evaluation.name(evaluate.outputs.at("accuracy"))});
  std::printf("accuracy %.2f\n", values[0].as<float>()[0]);
} catch (const dtf::Error& error) {
  std::fprintf(stderr, "train_model: error: %s\n", error.what());
  return error.code();
}
