// TRAIN.yaml and CLUSTER.yaml, and the graph of the model that they describe. An error is
// kBadConfig in compiler form; an accepted file keeps the promises of spec.h.

#include "common/base/error.h"
#include "common/cluster/cluster_yaml.h"
#include "common/model/model_graph.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/heap_bound.h"
#include "tests/fuzz/memory_path.h"
#include "tests/support/train_file.h"

namespace {

using namespace dtf;

template <class Load>
void tryToLoad(const Load& load) {
  try {
    load();
  } catch (const Error& error) {
    FUZZ_CHECK(error.code() == ErrorCode::kBadConfig);
    FUZZ_CHECK(error.message().find("error: ") != std::string::npos);
  }
}

void checkTrain(const cluster::TrainSpec& train) {
  FUZZ_CHECK(!train.model.layers.empty() && train.steps > 0 && train.data.batch_size > 0);
  for (const int64_t size : train.model.input_shape) FUZZ_CHECK(size > 0);
  tryToLoad([&] {
    const model::ModelGraph built = model::buildTrainingGraph(train.model, train.data.batch_size,
                                                              model::TableGradient::kSparse);
    FUZZ_CHECK(!built.variables.empty() && !built.layers.empty());
    for (const model::ModelVariable& variable : built.variables) {
      FUZZ_CHECK(variable.gradient.has_value() && variable.update.has_value());
    }
  });
}

// Without a cluster one worker trains in one process; with one, it has each of both jobs.
void checkCluster(const cluster::ClusterSpec& cluster) {
  FUZZ_CHECK(!cluster.worker.empty());
  FUZZ_CHECK(!cluster.hosts().empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const dtf::fuzz::HeapBound bound(size);
  // A file may name another, even descriptor 0: it must not wait for a terminal.
  static const bool no_terminal = std::freopen("/dev/null", "r", stdin) != nullptr;
  FUZZ_CHECK(no_terminal);
  const fuzz::MemoryPath file(data, size);
  tryToLoad([&] { checkTrain(testing::readTrainFile(file.path())); });
  tryToLoad([&] {
    const cluster::JobSpec job = cluster::loadCluster(file.path(), {});
    checkCluster(job.cluster);
    FUZZ_CHECK(!job.job.empty());
    if (job.train) checkTrain(*job.train);
  });
  return 0;
}
