// TensorFlow's classic program: started once for each task of a cluster, with its four flags. A ps
// holds variables until a signal ends it; each worker trains a softmax classifier of digits, in
// async, on its own share of the examples. Worker 0 initializes, and prints the accuracy.
//   parameter_server --ps_hosts=localhost:2222 --worker_hosts=localhost:2223,localhost:2224
//       --job_name=worker --task_index=0 [--steps=300]

#include <dtf/dataset.h>
#include <dtf/device_setter.h>
#include <dtf/server.h>
#include <dtf/session.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <thread>

namespace {

constexpr int64_t kBatch = 50, kClasses = 10, kPixels = 28 * 28;
constexpr char kData[] =
    "{train: {format: digits, count: 5000}, eval: {format: digits, count: 1000}, batch_size: 50}";

using Flags = std::map<std::string, std::string>;

Flags flagsOf(int argc, char** argv) {
  Flags flags = {{"ps_hosts", ""},
                 {"worker_hosts", ""},
                 {"job_name", ""},
                 {"task_index", ""},
                 {"steps", "300"}};
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
  for (const char* name : {"worker_hosts", "job_name", "task_index"})
    if (flags.at(name).empty()) throw dtf::Error(DTF_USAGE, std::string("give --") + name);
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

// The model, with its training step.
struct Model {
  dtf::Graph graph;
  dtf::Minimized training;
  dtf::Output loss, accuracy;

  explicit Model(const dtf::DeviceFunction& devices) {
    const auto scope = graph.device(devices);
    const dtf::Output weights = graph.variable("softmax/weights", {kPixels, kClasses});
    const dtf::Output biases = graph.variable("softmax/biases", {kClasses});
    const dtf::Output images = graph.placeholder("images", DTF_UINT8, {kBatch, 28, 28, 1});
    const dtf::Output labels = graph.placeholder("labels", DTF_UINT8, {kBatch});
    const dtf::Output pixels = graph.op("Normalise", {images}, {{"scale", 1.0 / 255}});
    const dtf::Output rows = graph.op("Reshape", {pixels}, {{"shape", dtf::Dims{kBatch, kPixels}}});
    const dtf::Output logits = graph.biasAdd(graph.matMul(rows, weights), biases);
    loss = graph.mean(graph.op("SparseSoftmaxCrossEntropyWithLogits", {logits, labels}));
    accuracy = graph.op("Accuracy", {logits, labels});
    training = graph.minimize(loss, dtf::GradientDescent{.learning_rate = 0.3});
  }
};

float accuracyOf(Model& model, dtf::Session& session) {
  dtf::DatasetOptions evaluation;
  evaluation.evaluation = true;
  dtf::Dataset test(kData, evaluation);
  float sum = 0;
  const int64_t batches = test.size() / kBatch;
  for (int64_t i = 0; i < batches; ++i) {
    const dtf::Dataset::Batch batch = test.slice(i * kBatch, kBatch);
    sum += session
               .run({{"images", batch.features()}, {"labels", batch.labels()}},
                    {model.graph.name(model.accuracy)})[0]
               .as<float>()[0];
  }
  return sum / static_cast<float>(batches);
}

// Worker 0 initializes; without it the others would wait for ever.
void waitForInitialization(dtf::Session& session, int64_t index) {
  constexpr auto kPatience = std::chrono::seconds(60);
  const auto begin = std::chrono::steady_clock::now();
  for (bool is_first = true; !session.uninitialized().empty(); is_first = false) {
    if (is_first) {
      std::printf("worker/%d waits until worker/0 has initialized\n", static_cast<int>(index));
      std::fflush(stdout);
    }
    if (std::chrono::steady_clock::now() - begin > kPatience)
      throw dtf::Error(DTF_DEADLINE,
                       "worker/0 has not initialized the variables within 60 s: "
                       "start the program with --task_index=0");
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

void train(const dtf::ClusterSpec& cluster, const dtf::Server& server, int64_t index,
           int64_t steps) {
  Model model(dtf::replicaDeviceSetter(cluster, "/job:worker/task:" + std::to_string(index)));
  dtf_session_options patient = dtf::Session::defaults();
  patient.connect_seconds = 60;  // the programs start in any order
  dtf::Session session(model.graph, {server.target()}, patient);
  if (index == 0) session.initialize(1);
  waitForInitialization(session, index);

  dtf::DatasetOptions share;
  share.rank = index;
  share.of = static_cast<int64_t>(cluster.numTasks("worker"));
  dtf::Dataset digits(kData, share);
  const std::vector<std::string> fetches = {model.graph.name(model.training.train),
                                            model.graph.name(model.loss)};
  for (int64_t step = 0, own = 0; step < steps; ++own) {
    const dtf::Dataset::Batch batch = digits.nextBatch(kBatch);
    const auto values =
        session.run({{"images", batch.features()}, {"labels", batch.labels()}}, fetches);
    step = values[0].as<int64_t>()[0];
    if (own % 50 == 0)
      std::printf("worker/%d: global step %d, loss %.4f\n", static_cast<int>(index),
                  static_cast<int>(step), values[1].as<float>()[0]);
    std::fflush(stdout);
  }
  if (index == 0) std::printf("accuracy %.3f\n", accuracyOf(model, session));
  std::printf("worker/%d is done\n", static_cast<int>(index));
}

}  // namespace

int main(int argc, char** argv) try {
  const auto flags = flagsOf(argc, argv);
  const auto flag = [&](const char* name) { return flags.at(name); };
  const dtf::ClusterSpec cluster({{"ps", dtf::ClusterSpec::hosts(flag("ps_hosts"))},
                                  {"worker", dtf::ClusterSpec::hosts(flag("worker_hosts"))}});
  const int64_t index = numberOf(flags, "task_index");
  const bool is_ps = flag("job_name") == "ps";
  dtf::ServerOptions options;
  options.handle_signals = is_ps;
  dtf::Server server(cluster, flag("job_name"), index, options);
  std::printf("serving %s\n", server.target().c_str());
  std::fflush(stdout);
  if (is_ps)
    std::printf("%s\n", server.join().reason.c_str());
  else
    train(cluster, server, index, numberOf(flags, "steps"));
} catch (const dtf::Error& error) {
  std::fprintf(stderr, "parameter_server: error: %s\n", error.what());
  return error.code();
}
