// Time of one step of softmax regression on MNIST's shape (100 x 784 x 10): forward, cross-entropy
// and gradients from uint8, without an optimizer and without a network. `hot` uses one batch again
// and again, `epoch` walks through 60 000 images as training does. CPU time of the one thread,
// medians.

#include "tests/bench/softmax_step.h"

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "common/base/random.h"
#include "common/runtime/fused_softmax.h"
#include "common/runtime/processor.h"
#include "common/tensor/buffer.h"

namespace dtf::bench {
namespace {

constexpr int64_t kBatch = 100, kInputs = 784, kClasses = 10;

struct Data {
  explicit Data(int64_t batches_in)
      : batches(batches_in),
        images(static_cast<size_t>(batches * kBatch * kInputs)),
        labels(static_cast<size_t>(batches * kBatch) * 4),
        weights(kInputs * kClasses * 4),
        gradient((kInputs + 1) * kClasses * 4),
        workspace(runtime::fusedSoftmaxWorkspaceBytes(kBatch, kInputs, kClasses)) {
    Random random(1);
    for (size_t i = 0; i < images.bytes(); ++i) images.as<uint8_t>()[i] = random.next32() & 255;
    for (int64_t i = 0; i < batches * kBatch; ++i) {
      labels.as<int32_t>()[i] = static_cast<int32_t>(random.below(kClasses));
    }
    for (int64_t i = 0; i < kInputs * kClasses; ++i) weights.as<float>()[i] = random.normal() / 28;
  }

  void step(Isa isa, int64_t batch) {
    runtime::FusedSoftmaxStep s;
    s.bytes = images.as<uint8_t>() + batch * kBatch * kInputs;
    s.scale = 1.0f / 255;
    s.weights = weights.as<float>();
    s.bias = bias;
    s.labels = labels.as<int32_t>() + batch * kBatch;
    s.batch = kBatch, s.inputs = kInputs, s.classes = kClasses;
    s.gradient_scale = 1.0f / kBatch;
    s.loss = &loss;
    s.weights_gradient = gradient.as<float>();
    s.bias_gradient = gradient.as<float>() + kInputs * kClasses;
    s.workspace = workspace.as<float>();
    runtime::fusedSoftmax(isa, s);
  }

  int64_t batches;
  Buffer images, labels, weights, gradient, workspace;
  float bias[kClasses] = {};
  float loss = 0;
};

// CPU time of this thread: the cost of a step even while other programs use the machine.
double cpuMicroseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

// Median over repetitions of the mean step time, in microseconds of CPU time.
double measure(Data& data, Isa isa) {
  constexpr int kRepetitions = 9, kSteps = 600;
  std::vector<double> times;
  for (int r = 0; r < kRepetitions; ++r) {
    const double start = cpuMicroseconds();
    for (int i = 0; i < kSteps; ++i) data.step(isa, i % data.batches);
    times.push_back((cpuMicroseconds() - start) / kSteps);
  }
  std::nth_element(times.begin(), times.begin() + kRepetitions / 2, times.end());
  return times[kRepetitions / 2];
}

}  // namespace

int benchSoftmaxStep(bool json) {
  Data hot(1), epoch(600);
  for (const Isa isa : supportedIsas()) {
    const double hot_us = measure(hot, isa), epoch_us = measure(epoch, isa);
    const std::string name(isaName(isa));
    if (json) {
      std::printf("{\"table\":\"softmax-step\",\"isa\":\"%s\",\"hot_us\":%.2f,\"epoch_us\":%.2f}\n",
                  name.c_str(), hot_us, epoch_us);
    } else {
      std::printf("softmax-step 100x784x10 uint8 %-10s hot %6.2f us  epoch %6.2f us\n",
                  name.c_str(), hot_us, epoch_us);
    }
  }
  return 0;
}

}  // namespace dtf::bench
