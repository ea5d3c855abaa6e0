// Workers of two kinds, as in reinforcement learning: actors read the policy and try it, a learner
// changes it. The policy, a preference for each of four levers, is a variable on ps/0. Each actor
// and the learner is a client with its own session, and could be a program on another host. Usage:
// actors_and_learner PS                dtf://host:port of a `psd --serve`

#include <dtf/session.h>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <queue>
#include <random>
#include <stop_token>
#include <thread>

namespace {

constexpr int kLevers = 4;
constexpr int kActors = 2;
constexpr int kTries = 2000;
constexpr float kPays[kLevers] = {0.2F, 0.5F, 0.9F, 0.4F};  // their probabilities

struct Try {
  int lever;
  float reward;
};

// Tries that the actors have made and the learner has not used.
class Experience {
 public:
  void add(Try one) {
    {
      const std::lock_guard lock(mutex_);
      tries_.push(one);
    }
    there_.notify_one();
  }
  Try take() {
    std::unique_lock lock(mutex_);
    there_.wait(lock, [this] { return !tries_.empty(); });
    const Try one = tries_.front();
    tries_.pop();
    return one;
  }

 private:
  std::mutex mutex_;
  std::condition_variable there_;
  std::queue<Try> tries_;
};

dtf::Output policy(dtf::Graph& graph) {
  const auto on_ps = graph.device("/job:ps/task:0");
  return graph.variable("policy", {1, kLevers});
}

int complain(const dtf::Error& error) {
  std::fprintf(stderr, "actors_and_learner: error: %s\n", error.what());
  return error.code();
}

// Only reads the policy.
void act(const std::stop_token& done, const std::string& ps, unsigned seed, Experience& seen) try {
  dtf::Graph graph;
  graph.op("Softmax", {policy(graph)}, {}, "chances");
  dtf::Session session(graph, {ps});
  std::mt19937 random(seed);
  while (!done.stop_requested()) {
    const dtf::Tensor chances = std::move(session.run({}, {"chances"})[0]);
    const auto of = chances.as<float>();
    const int lever = std::discrete_distribution<int>(of.begin(), of.end())(random);
    seen.add({lever, std::bernoulli_distribution(kPays[lever])(random) ? 1.F : 0.F});
  }
} catch (const dtf::Error& error) {
  std::_Exit(complain(error));  // the learner would wait for experience
}

// The policy gradient: levers that paid more than average become more likely.
std::vector<float> learn(const std::string& ps, Experience& seen) {
  dtf::Graph graph;
  const dtf::Output liked = policy(graph);
  const dtf::Output lever = graph.placeholder("lever", DTF_INT32, {1});
  const dtf::Output better = graph.placeholder("better", DTF_FLOAT32, {1, kLevers});
  const dtf::Output loss =
      graph.mean(graph.op("SparseSoftmaxCrossEntropyWithLogits", {liked, lever}));
  const dtf::Output gradient = graph.mul(graph.gradients(loss, {liked})[0], better);
  const std::string update = graph.name(graph.assignSub(liked, graph.scale(gradient, 0.2)));
  dtf::Session session(graph, {ps});
  float usual = 0;
  for (int i = 0; i < kTries; ++i) {
    const Try one = seen.take();
    const std::vector<float> by(kLevers, one.reward - usual);
    usual += (one.reward - usual) / static_cast<float>(i + 1);
    session.run({{"lever", dtf::Tensor::of<int32_t>({1}, std::vector{one.lever})},
                 {"better", dtf::Tensor::of<float>({1, kLevers}, by)}},
                {}, {update});
  }
  const auto values = session.run({}, {"policy"});
  const auto learnt = values[0].as<float>();
  return {learnt.begin(), learnt.end()};
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) throw dtf::Error(DTF_USAGE, "usage: actors_and_learner dtf://PS");
  const std::string ps = argv[1];
  dtf::Graph graph;
  policy(graph);
  dtf::Session(graph, {ps}).setVariable("policy", dtf::Tensor(DTF_FLOAT32, {1, kLevers}));

  Experience seen;
  std::vector<std::jthread> actors;  // they end with this scope
  for (unsigned i = 0; i < kActors; ++i)
    actors.emplace_back([&, i](const std::stop_token& done) { act(done, ps, i + 1, seen); });
  const std::vector<float> learnt = learn(ps, seen);
  const auto best = std::max_element(learnt.begin(), learnt.end()) - learnt.begin();
  std::printf("lever %d is liked best:", static_cast<int>(best));
  for (const float liking : learnt) std::printf(" %.2f", liking);
  std::printf("\n");
} catch (const dtf::Error& error) {
  return complain(error);
}
