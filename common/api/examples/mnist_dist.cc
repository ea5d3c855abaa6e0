// TensorFlow's classic distributed MNIST program: the same program is each ps and each worker, by
// four flags. In four terminals:
//
//   mnist_dist --ps_hosts=localhost:2221,localhost:2222 ..
//              --worker_hosts=localhost:2223,localhost:2224 --job_name=ps --task_index=0
//   ... --job_name=ps --task_index=1
//   ... --job_name=worker --task_index=0
//   ... --job_name=worker --task_index=1
//
// --issync=1 trains in sync: each step takes the mean of all workers' gradients. --data_dir is the
// folder of MNIST's four files (scripts/fetch-mnist.sh); without it the digits are dtf's own.
// Others: --train_steps, --log_dir. mnist_dist.py is the same program in Python.

#include <dtf/dataset.h>
#include <dtf/device_setter.h>
#include <dtf/server.h>
#include <dtf/supervisor.h>
#include <dtf/sync_replicas.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>

namespace {

constexpr int64_t kBatch = 100, kHidden = 100, kPixels = 784, kClasses = 10, kReportEvery = 100;

using Flags = std::map<std::string, std::string>;

Flags flagsOf(int argc, char** argv) {  // 1. the flags
  Flags flags = {
      {"ps_hosts", ""}, {"worker_hosts", ""},    {"job_name", ""}, {"task_index", "0"},
      {"issync", "0"},  {"train_steps", "2000"}, {"data_dir", ""}, {"log_dir", "runs/mnist_dist"}};
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const size_t equals = flag.find('=');
    if (flag.compare(0, 2, "--") != 0)
      throw dtf::Error(DTF_USAGE, "'" + flag + "' is no flag: give --NAME=VALUE");
    const std::string name = flag.substr(2, equals == std::string::npos ? equals : equals - 2);
    if (flags.count(name) == 0) throw dtf::Error(DTF_USAGE, "there is no flag --" + name);
    if (equals == std::string::npos)
      throw dtf::Error(DTF_USAGE, "--" + name + " has no value: give --" + name + "=VALUE");
    flags[name] = flag.substr(equals + 1);
  }
  return flags;
}

// Returns a flag that is a whole number.
int64_t numberOf(const Flags& flags, const std::string& name) {
  const std::string& text = flags.at(name);
  char* end = nullptr;
  errno = 0;
  const long long number = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || errno != 0)
    throw dtf::Error(DTF_USAGE, "--" + name + "=" + text + ": give a whole number");
  return number;
}

std::string settings(const std::string& folder) {
  const auto files = [&](const std::string& name) {
    return "{format: idx, images: " + folder + "/" + name +
           "-images-idx3-ubyte.gz, labels: " + folder + "/" + name + "-labels-idx1-ubyte.gz}";
  };
  const std::string common = ", batch_size: " + std::to_string(kBatch) + ", seed: 1}";
  if (folder.empty())
    return "{train: {format: digits, count: 10000}, eval: {format: digits, count: 2000}" + common;
  return "{train: " + files("train") + ", eval: " + files("t10k") + common;
}

struct Model {
  dtf::Graph graph;
  dtf::Output loss, accuracy, train;
  std::optional<std::string> finish;  // in sync: a node to run at the end

  Model(const dtf::ClusterSpec& cluster, int64_t index, bool is_sync) {
    {
      const std::string worker = "/job:worker/task:" + std::to_string(index);
      const auto devices = graph.device(dtf::replicaDeviceSetter(cluster, worker));  // 5.
      addLoss();
      graph.counter("global_step");
    }
    const dtf::Optimizer optimizer = dtf::Adam{.learning_rate = 0.001};  // 9. the optimizer
    if (!is_sync) {
      train = graph.minimize(loss, optimizer).train;
      return;
    }
    const auto workers = static_cast<int64_t>(cluster.numTasks("worker"));
    const dtf::SyncMinimized made =
        dtf::syncReplicas(optimizer, {.replicas_to_aggregate = workers, .rank = index})
            .minimize(graph, loss);
    train = made.train;
    finish = graph.name({made.finish, 0});
  }

 private:
  void addLoss() {
    const dtf::Output images = graph.placeholder("images", DTF_UINT8, {kBatch, 28, 28, 1});  // 6.
    const dtf::Output labels = graph.placeholder("labels", DTF_UINT8, {kBatch});

    const dtf::Output hidden_w =
        graph.variable("hidden/weights", {kPixels, kHidden}, "glorot_uniform");  // 7. the model
    const dtf::Output hidden_b = graph.variable("hidden/biases", {kHidden});
    const dtf::Output softmax_w =
        graph.variable("softmax/weights", {kHidden, kClasses}, "glorot_uniform");
    const dtf::Output softmax_b = graph.variable("softmax/biases", {kClasses});
    const dtf::Output scaled = graph.op("Normalise", {images}, {{"scale", 1.0 / 255}});
    const dtf::Output pixels =
        graph.op("Reshape", {scaled}, {{"shape", dtf::Dims{kBatch, kPixels}}});
    const dtf::Output hidden = graph.relu(graph.biasAdd(graph.matMul(pixels, hidden_w), hidden_b));
    const dtf::Output logits = graph.biasAdd(graph.matMul(hidden, softmax_w), softmax_b);

    loss = graph.op("Mean", {graph.op("SparseSoftmaxCrossEntropyWithLogits", {logits, labels})}, {},
                    "loss");  // 8. the loss
    accuracy = graph.op("Accuracy", {logits, labels}, {}, "accuracy");
  }
};

std::vector<dtf::Feed> feeds(const dtf::Dataset::Batch& batch) {
  return {{"images", batch.features()}, {"labels", batch.labels()}};
}

// Ends the waiting of the other workers, in sync.
void finish(const std::string& node, dtf::Supervisor& supervisor) {
  constexpr int kTries = 3;
  for (int i = 0; i < kTries; ++i)
    if (!supervisor.run({}, {}, {node}).recovered) return;  // else a task was lost: again
  throw dtf::Error(DTF_UNAVAILABLE, "a task was lost at the end, again and again");
}

// Of the chief, once the training has ended.
void evaluate(const Model& model, dtf::Supervisor& supervisor, const std::string& data) {
  if (model.finish) finish(*model.finish, supervisor);
  dtf::DatasetOptions evaluation;
  evaluation.evaluation = true;
  dtf::Dataset test(data, evaluation);
  double right = 0;
  for (int64_t first = 0; first < test.size(); first += kBatch) {
    const dtf::RunResult result =
        supervisor.run(feeds(test.slice(first, kBatch)), {model.graph.name(model.accuracy)});
    if (result.recovered) throw dtf::Error(DTF_UNAVAILABLE, "a task was lost in the evaluation");
    right += static_cast<double>(result.values[0].as<float>()[0]) * kBatch;
  }
  std::printf("accuracy on %d digits: %.4f\n", static_cast<int>(test.size()),
              right / static_cast<double>(test.size()));
}

void train(const dtf::ClusterSpec& cluster, const dtf::Server& server, const Flags& flags) {
  const int64_t index = numberOf(flags, "task_index"), steps = numberOf(flags, "train_steps");
  const bool is_chief = index == 0;
  Model model(cluster, index, flags.at("issync") != "0");
  const std::vector<std::string> fetches = {model.graph.name(model.train),
                                            model.graph.name(model.loss),
                                            model.graph.name(model.accuracy)};
  dtf::Supervisor supervisor({.is_chief = is_chief,  // 10. and 11. saves, restores, summarises
                              .task = "worker/" + std::to_string(index),
                              .log_dir = flags.at("log_dir"),
                              .seed = 1,
                              .summary_seconds = 5,
                              .poll_seconds = 0.1,
                              .summaries = {fetches[1], fetches[2]},
                              .handle_signals = true});
  dtf::DatasetOptions share;
  share.rank = index;
  share.of = static_cast<int64_t>(cluster.numTasks("worker"));
  const std::string data = settings(flags.at("data_dir"));
  dtf::Dataset digits(data, share);
  dtf_session_options patient = dtf::Session::defaults();
  patient.connect_seconds = 60;  // the programs start in any order
  supervisor.prepareOrWaitForSession(model.graph, {server.target()}, patient);
  int64_t step = supervisor.globalStep();
  // In sync the others train until the chief ends the run: it may need their gradients again.
  const bool counts = is_chief || !model.finish;
  while (!supervisor.shouldStop() && (!counts || step < steps)) {  // 12. the loop
    dtf::RunResult result;
    try {
      result = supervisor.run(feeds(digits.batch(static_cast<uint64_t>(step))), fetches);
    } catch (const dtf::Error& error) {
      if (error.code() == DTF_OUT_OF_RANGE) break;  // in sync: the chief evaluates already
      throw;
    }
    if (result.recovered) {  // a task was lost and is back
      step = supervisor.globalStep();
      continue;
    }
    const int64_t last = std::exchange(step, result.values[0].as<int64_t>()[0]);
    if (step / kReportEvery != last / kReportEvery)
      std::printf("worker/%d: step %d: loss %.4f, accuracy %.2f\n", static_cast<int>(index),
                  static_cast<int>(step), result.values[1].as<float>()[0],
                  result.values[2].as<float>()[0]);
    std::fflush(stdout);
  }
  if (supervisor.shouldStop())
    std::printf("worker/%d: stopped at step %d\n", static_cast<int>(index), static_cast<int>(step));
  else if (is_chief)
    evaluate(model, supervisor, data);
  supervisor.stop();
}

}  // namespace

int main(int argc, char** argv) try {
  const Flags flags = flagsOf(argc, argv);
  const dtf::ClusterSpec cluster(
      {{"ps", dtf::ClusterSpec::hosts(flags.at("ps_hosts"))},
       {"worker", dtf::ClusterSpec::hosts(flags.at("worker_hosts"))}});  // 2. the cluster
  const bool is_ps = flags.at("job_name") == "ps";
  dtf::ServerOptions options;
  options.handle_signals = is_ps;
  dtf::Server server(cluster, flags.at("job_name"), numberOf(flags, "task_index"),
                     options);  // 3. the server
  if (is_ps)
    std::printf("%s\n", server.join().reason.c_str());  // 4. serves until a signal ends it
  else
    train(cluster, server, flags);
} catch (const dtf::Error& error) {
  std::fprintf(stderr, "mnist_dist: error: %s\n", error.what());
  return error.code();
}
