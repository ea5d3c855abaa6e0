#pragma once

// A whole job in this process: real shards, real kernels, one thread per worker.

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "common/base/clock.h"
#include "common/base/thread.h"
#include "common/data/digits.h"
#include "common/exchange/local_exchange_client.h"
#include "common/runtime/cpu_device.h"
#include "common/runtime/cpu_kernels.h"
#include "common/train/training_loop.h"
#include "tests/unit/model/models.h"

namespace dtf::train {

inline std::shared_ptr<const data::Dataset> digits(data::DigitStream stream, int64_t count) {
  return std::make_shared<const data::Dataset>(data::drawDigits(1, stream, count, 2));
}

inline runtime::KernelTable cpuKernels() {
  runtime::KernelTable kernels;
  runtime::registerCpuKernels(kernels);
  return kernels;
}

// Softmax regression on 2000 digits with plain gradient descent.
inline cluster::TrainSpec softmaxJob(uint64_t steps) {
  cluster::TrainSpec train;
  train.model = model::softmaxModel();
  train.data.batch_size = 50;
  train.optimizer.learning_rate = 0.5;
  train.steps = steps;
  return train;
}

inline const std::shared_ptr<const data::Dataset>& trainDigits() {
  static const auto dataset = digits(data::DigitStream::kTrain, 2000);
  return dataset;
}
inline const std::shared_ptr<const data::Dataset>& evalDigits() {
  static const auto dataset = digits(data::DigitStream::kEval, 1003);  // with a tail
  return dataset;
}

inline cluster::TrainSpec syncJob(uint64_t steps, uint32_t replicas_to_aggregate = 0) {
  cluster::TrainSpec train = softmaxJob(steps);
  train.replication.mode = cluster::ReplicationSpec::Mode::kSync;
  train.replication.replicas_to_aggregate = replicas_to_aggregate;
  return train;
}

struct JobResult {
  std::vector<TrainingResult> workers;
  std::vector<std::vector<float>> parameters;  // by ps task, at the end
  std::vector<Progress> progress;              // of the chief
  std::optional<Evaluation> evaluation;        // from the chief, if there was eval data
};

struct TasksOfJob {
  uint32_t ps_tasks = 2;
  uint32_t workers = 1;
  uint32_t towers = 1;  // of each worker
  int threads = 1;      // of each worker
};

// The initial values of a job on one ps, bound for its only worker's step.
class BoundParameters {
 public:
  explicit BoundParameters(const cluster::TrainSpec& train);
  ParameterBinding& binding() { return *binding_; }

 private:
  SystemClock clock_;
  exchange::LocalCluster cluster_{1, 1, clock_, std::chrono::seconds(20)};
  exchange::LocalExchangeClient client_{cluster_, 0};
  std::optional<ParameterBinding> binding_;
};

// Runs the job to its end. Rethrows the first worker's error.
JobResult runJob(const cluster::TrainSpec& train, const TasksOfJob& size,
                 std::shared_ptr<const data::Dataset> dataset,
                 std::shared_ptr<const data::Dataset> eval = nullptr);

}  // namespace dtf::train
