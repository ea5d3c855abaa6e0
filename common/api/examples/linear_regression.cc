// A custom training step: forward pass, gradients, and an update of each variable, as one graph.
// The weights are on ps/0 and remain there when this program has ended. Usage: linear_regression
// WORKER [PS]        dtf://host:port of a `workerd --serve`, which knows
//                                             the address of the ps

#include <dtf/session.h>

#include <cstdio>
#include <random>

int main(int argc, char** argv) try {
  if (argc != 2 && argc != 3)
    throw dtf::Error(DTF_USAGE, "usage: linear_regression dtf://WORKER [dtf://PS]");
  constexpr int64_t kExamples = 64;

  dtf::Graph graph;
  dtf::Output w, bias;
  {
    const auto on_ps = graph.device("/job:ps/task:0");
    w = graph.variable("w", {2, 1});
    bias = graph.variable("bias", {1});
  }
  const auto on_worker = graph.device("/job:worker/task:0");
  const dtf::Output x = graph.placeholder("x", DTF_FLOAT32, {kExamples, 2});
  const dtf::Output y = graph.placeholder("y", DTF_FLOAT32, {kExamples, 1});
  const dtf::Output error = graph.sub(graph.biasAdd(graph.matMul(x, w), bias), y);
  const dtf::Output loss = graph.mean(graph.mul(error, error));
  const std::vector<dtf::Output> gradients = graph.gradients(loss, {w, bias});
  const std::string learn_w = graph.name(graph.assignSub(w, graph.scale(gradients[0], 0.2)));
  const std::string learn_bias = graph.name(graph.assignSub(bias, graph.scale(gradients[1], 0.2)));

  dtf::Session session(graph, {argv + 1, argv + argc});
  session.setVariable("w", dtf::Tensor(DTF_FLOAT32, {2, 1}));  // zeros
  session.setVariable("bias", dtf::Tensor(DTF_FLOAT32, {1}));
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-1, 1);
  dtf::Tensor examples(DTF_FLOAT32, {kExamples, 2}), targets(DTF_FLOAT32, {kExamples, 1});
  for (int step = 0; step < 300; ++step) {
    for (int64_t i = 0; i < kExamples; ++i) {
      float* const row = examples.as<float>().data() + 2 * i;
      row[0] = uniform(random);
      row[1] = uniform(random);
      targets.as<float>()[static_cast<size_t>(i)] = 3 * row[0] - 2 * row[1] + 0.5F;
    }
    const auto values =
        session.run({{"x", examples}, {"y", targets}}, {graph.name(loss)}, {learn_w, learn_bias});
    if (step % 100 == 0) std::printf("step %d: loss %.6f\n", step, values[0].as<float>()[0]);
  }
  const auto learnt = session.run({}, {"w", "bias"});
  std::printf("y = %.3f x0 + %.3f x1 + %.3f\n", learnt[0].as<float>()[0], learnt[0].as<float>()[1],
              learnt[1].as<float>()[0]);
} catch (const dtf::Error& error) {
  std::fprintf(stderr, "linear_regression: error: %s\n", error.what());
  return error.code();
}
