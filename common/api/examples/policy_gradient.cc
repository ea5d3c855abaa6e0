// REINFORCE on levers with different pay, as one graph: it draws the policy's actions and their
// pay, and follows the gradient of log(probability) * advantage. The fed seed determines all draws.
// Usage: policy_gradient [WORKER]          dtf://host:port of a `workerd --serve`; without it, in
//                                          this process

#include <dtf/session.h>

#include <cstdio>

namespace {

constexpr int64_t kPulls = 64, kLevers = 4;  // in each step

struct Learner {
  dtf::Output seed, reward, probability, update;
};

// Draws a lever for each row with the given probabilities: the largest of logits + Gumbel noise.
dtf::Output drawn(dtf::Graph& graph, dtf::Output logits, dtf::Output seed) {
  const dtf::Output uniform = graph.randomUniform(seed, {kPulls, kLevers}, 1);
  const dtf::Output gumbel = graph.scale(graph.log(graph.scale(graph.log(uniform), -1)), -1);
  return graph.argMax(graph.add(gumbel, logits), 1);
}

Learner build(dtf::Graph& graph) {
  Learner learner;
  const dtf::Output logits = graph.variable("logits", {kLevers});
  const dtf::Output pays = graph.placeholder("pays", DTF_FLOAT32, {kLevers});
  learner.seed = graph.placeholder("seed", DTF_INT64, {2});
  const dtf::Output chosen =
      graph.op("OneHot", {drawn(graph, logits, learner.seed)}, {{"depth", kLevers}});
  const dtf::Output noise = graph.randomNormal(learner.seed, {kPulls}, 2);
  const dtf::Output paid = graph.add(graph.sum(graph.mul(chosen, pays), {1}), noise);
  learner.reward = graph.mean(paid);
  const dtf::Output powers = graph.exp(logits);
  learner.probability = graph.div(powers, graph.sum(powers, {}));
  const dtf::Output log_of_chosen =
      graph.sum(graph.mul(chosen, graph.log(learner.probability)), {1});
  const dtf::Output advantage = graph.sub(paid, learner.reward);
  const dtf::Output loss = graph.scale(graph.mean(graph.mul(log_of_chosen, advantage)), -1);
  learner.update = graph.assignSub(logits, graph.scale(graph.gradients(loss, {logits})[0], 0.3));
  return learner;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc > 2) throw dtf::Error(DTF_USAGE, "usage: policy_gradient [dtf://WORKER]");
  dtf::Graph graph;
  const Learner learner = build(graph);
  dtf::Session session(graph, {argv + 1, argv + argc});
  session.setVariable("logits", dtf::Tensor(DTF_FLOAT32, {kLevers}));  // zeros: all alike
  dtf::Tensor pays(DTF_FLOAT32, {kLevers}), seed(DTF_INT64, {2});
  const float means[kLevers] = {0.1F, 0.5F, 1.5F, 0.9F};
  for (size_t i = 0; i < kLevers; ++i) pays.as<float>()[i] = means[i];
  for (int64_t step = 0; step <= 300; ++step) {
    seed.as<int64_t>()[0] = 7;
    seed.as<int64_t>()[1] = step;
    const auto values = session.run({{"seed", seed}, {"pays", pays}},
                                    {graph.name(learner.reward), graph.name(learner.probability)},
                                    {graph.name(learner.update)});
    if (step % 100 != 0) continue;
    std::printf("step %d: pays %.2f; probabilities", static_cast<int>(step),
                values[0].as<float>()[0]);
    for (const float probability : values[1].as<float>()) std::printf(" %.2f", probability);
    std::printf("\n");
  }
} catch (const dtf::Error& error) {
  std::fprintf(stderr, "policy_gradient: error: %s\n", error.what());
  return error.code();
}
