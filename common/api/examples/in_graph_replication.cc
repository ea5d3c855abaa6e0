// In-graph replication: one client whose graph has a copy of the model on each worker, over the
// same weights on ps/0. First in sync: the batch is split, and one update uses the mean of the
// copies' gradients, the same as one process computes for the whole batch. Then in async: a thread
// for each copy, each with its own update.
// Usage: in_graph_replication PS WORKER WORKER         dtf://host:port of one `psd --serve`, two
//                                                      `workerd --serve`

#include <dtf/session.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <thread>

namespace {

constexpr int64_t kBatch = 64, kInputs = 8;  // of all copies
constexpr double kRate = 0.1;
constexpr int kSteps = 50;

// Names of its nodes: feeds, fetches, and the update of the weights.
struct Copy {
  std::string x, y, loss, learn;
};
struct Model {
  Model(const std::string& of_weights, const std::vector<std::string>& devices);
  dtf::Graph graph;
  std::vector<Copy> copies;
  std::string learn;  // with the gradients of all copies
};

// Builds a copy on each device, for an equal part of the batch.
Model::Model(const std::string& of_weights, const std::vector<std::string>& devices) {
  dtf::Output w;
  {
    const auto device = graph.device(of_weights);
    w = graph.variable("w", {kInputs, 1});
  }
  const auto count = static_cast<int64_t>(devices.size());
  dtf::Output sum;
  for (const std::string& name : devices) {
    const auto device = graph.device(name);
    const std::string number = std::to_string(copies.size());
    const dtf::Output x = graph.placeholder("x" + number, DTF_FLOAT32, {kBatch / count, kInputs});
    const dtf::Output y = graph.placeholder("y" + number, DTF_FLOAT32, {kBatch / count, 1});
    const dtf::Output error = graph.sub(graph.matMul(x, w), y);
    const dtf::Output loss = graph.mean(graph.mul(error, error));
    const dtf::Output gradient = graph.gradients(loss, {w})[0];
    const dtf::Output own = graph.assignSub(w, graph.scale(gradient, kRate));
    copies.push_back({"x" + number, "y" + number, graph.name(loss), graph.name(own)});
    const auto on_ps = graph.device(of_weights);
    sum = copies.size() == 1 ? gradient : graph.add(sum, gradient);
  }
  const auto on_ps = graph.device(of_weights);
  learn =
      graph.name(graph.assignSub(w, graph.scale(sum, kRate / static_cast<double>(devices.size()))));
}

struct Batch {
  dtf::Tensor x, y;
};

// y is the sum of x.
Batch draw(std::mt19937& random, int64_t examples) {
  std::uniform_real_distribution<float> uniform(-1, 1);
  Batch batch{{DTF_FLOAT32, {examples, kInputs}}, {DTF_FLOAT32, {examples, 1}}};
  for (size_t i = 0; i < batch.x.as<float>().size(); ++i) {
    batch.x.as<float>()[i] = uniform(random);
    batch.y.as<float>()[i / kInputs] += batch.x.as<float>()[i];
  }
  return batch;
}

std::vector<dtf::Feed> feedsOf(const Model& model, const std::vector<Batch>& batches) {
  std::vector<dtf::Feed> feeds;
  for (size_t i = 0; i < model.copies.size(); ++i) {
    feeds.push_back({model.copies[i].x, batches[i].x});
    feeds.push_back({model.copies[i].y, batches[i].y});
  }
  return feeds;
}

std::vector<float> weights(dtf::Session& session) {
  const auto fetched = session.run({}, {"w"});
  return {fetched[0].as<float>().begin(), fetched[0].as<float>().end()};
}

Batch joined(const std::vector<Batch>& parts) {
  Batch whole{{DTF_FLOAT32, {kBatch, kInputs}}, {DTF_FLOAT32, {kBatch, 1}}};
  auto x = whole.x.as<float>().begin(), y = whole.y.as<float>().begin();
  for (const Batch& part : parts) {
    x = std::copy(part.x.as<float>().begin(), part.x.as<float>().end(), x);
    y = std::copy(part.y.as<float>().begin(), part.y.as<float>().end(), y);
  }
  return whole;
}

// Returns the difference of the two models.
float trainInSync(const Model& model, dtf::Session& session, const Model& one,
                  dtf::Session& alone) {
  std::mt19937 random(1);
  const auto count = static_cast<int64_t>(model.copies.size());
  for (int step = 0; step < kSteps; ++step) {
    std::vector<Batch> parts;
    for (int64_t i = 0; i < count; ++i) parts.push_back(draw(random, kBatch / count));
    session.run(feedsOf(model, parts), {}, {model.learn});
    std::vector<Batch> whole;
    whole.push_back(joined(parts));
    alone.run(feedsOf(one, whole), {}, {one.learn});
  }
  const std::vector<float> theirs = weights(session), ours = weights(alone);
  float apart = 0;
  for (size_t i = 0; i < ours.size(); ++i) apart = std::max(apart, std::abs(ours[i] - theirs[i]));
  return apart;
}

// The steps of two copies run concurrently; each update is atomic.
void trainInAsync(const Model& model, dtf::Session& session) {
  std::vector<std::thread> threads;
  for (size_t i = 0; i < model.copies.size(); ++i)
    threads.emplace_back([&, i] {
      std::mt19937 random(static_cast<unsigned>(2 + i));
      const Copy& copy = model.copies[i];
      for (int step = 0; step < kSteps; ++step) {
        const Batch batch = draw(random, kBatch / static_cast<int64_t>(model.copies.size()));
        session.run({{copy.x, batch.x}, {copy.y, batch.y}}, {copy.loss}, {copy.learn});
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 4)
    throw dtf::Error(DTF_USAGE, "usage: in_graph_replication dtf://PS dtf://WORKER dtf://WORKER");
  const Model model("/job:ps/task:0", {"/job:worker/task:0", "/job:worker/task:1"});
  const Model one("", {""});
  dtf::Session session(model.graph, {argv[2], argv[3], argv[1]}), alone(one.graph);
  const dtf::Tensor zeros(DTF_FLOAT32, {kInputs, 1});
  session.setVariable("w", zeros);
  alone.setVariable("w", zeros);
  const float apart = trainInSync(model, session, one, alone);
  std::printf("in sync: %zu copies are at most %g from one process\n", model.copies.size(), apart);
  trainInAsync(model, session);
  float wrong = 0;
  for (const float weight : weights(session)) wrong = std::max(wrong, std::abs(weight - 1));
  std::printf("in async: the weights are at most %g from 1\n", wrong);
  return apart <= 1e-6F && wrong < 0.05F ? 0 : 1;
} catch (const dtf::Error& error) {
  std::fprintf(stderr, "in_graph_replication: error: %s\n", error.what());
  return error.code();
}
