#include "tests/bench/null_step_worker.h"
#include "common/ps/epoch.h"

#include <fmt/core.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>

#include "common/base/clock.h"
#include "common/base/error.h"
#include "common/wire/rpc_parameter_client.h"
#include "tests/bench/raw_peer.h"

namespace dtf::bench {

namespace {

// One variable on each ps, updated by gradient descent; a step takes one gradient of every worker.
ps::ModelDeclaration declarationOf(const NullStepWorker& worker) {
  std::vector<ps::VariableParts> variables;
  for (uint32_t task = 0; task < worker.job.cluster.ps.size(); ++task)
    variables.push_back({fmt::format("variable{}", task),
                         Shape{static_cast<int64_t>(worker.elements)},
                         {{task, 0, worker.elements}}});
  const auto workers = static_cast<uint32_t>(worker.job.cluster.worker.size());
  ps::ModelDeclaration declaration;
  declaration.layout =
      ps::makeLayout(variables, static_cast<uint32_t>(worker.job.cluster.ps.size()));
  declaration.optimizer = cluster::defaultOptimizer(cluster::OptimizerSpec::Kind::kGradientDescent);
  declaration.replication = {cluster::ReplicationSpec::Mode::kSync, workers, workers};
  declaration.steps = uint64_t{1} << 40;  // never reached: the workers end the job
  return declaration;
}

// A worker with its connections, ready to step.
class Stepper {
 public:
  explicit Stepper(const NullStepWorker& worker) : client_(optionsOf(worker)) {
    const ps::ModelDeclaration declaration = declarationOf(worker);
    client_.declare(declaration);
    if (worker.rank == 0) initialise(declaration.layout);
    client_.waitInitialised();
    state_ = client_.pull();
    // Written, not only zero: pages that nobody wrote are all the same page, and quick to send.
    for (uint32_t task = 0; task < declaration.layout.shards.size(); ++task)
      std::memset(client_.gradients(task), 0,
                  declaration.layout.shards[task].elements * sizeof(float));
  }

  void step() {
    state_ = client_.exchange(state_.next_step, state_.next_batch, 0);
    if (state_.outcome != ps::Outcome::kApplied)
      throw Error(ErrorCode::kInternal, "a null step was not applied");
  }
  void meetOthers(const std::string& name) { client_.barrier(name); }
  void finish() { client_.finish(); }

 private:
  static wire::RpcClientOptions optionsOf(const NullStepWorker& worker) {
    wire::RpcClientOptions options;
    options.link =
        wire::linkOptions(worker.job, {JobKind::kWorker, worker.rank}, Incarnation::ofNow());
    options.ps = wire::addressesOf(worker.job.cluster.ps);
    return options;
  }

  void initialise(const ps::ParameterLayout& layout) {
    std::vector<std::vector<float>> values;
    for (const ps::ShardLayout& shard : layout.shards) values.emplace_back(shard.elements);
    client_.initialise(std::vector<std::span<const float>>(values.begin(), values.end()),
                       ps::kFirstEpoch);
  }

  wire::RpcParameterClient client_;
  ps::StepState state_;
};

std::vector<double> timeSteps(int steps, const std::function<void()>& step) {
  const SystemClock clock;
  std::vector<double> seconds;
  step();
  for (int i = 0; i < steps; ++i) {
    const TimePoint start = clock.now();
    step();
    seconds.push_back(toSeconds(clock.now() - start));
  }
  return seconds;
}

void writeAll(const Fd& out, const std::vector<double>& values) {
  const auto* at = reinterpret_cast<const std::byte*>(values.data());
  for (size_t left = values.size() * sizeof(double); left > 0;) {
    const ssize_t wrote = ::write(out.get(), at, left);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) throw Error(ErrorCode::kUnavailable, "nobody reads the times");
    at += wrote;
    left -= static_cast<size_t>(wrote);
  }
}

}  // namespace

void runNullStepWorker(const NullStepWorker& worker, const Fd& out) {
  std::vector<NullStepTimes> all;
  {
    const size_t bytes = worker.elements * sizeof(float) * worker.job.cluster.ps.size();
    RawClient raw(worker.raw_port, bytes);
    Stepper stepper(worker);
    for (int i = 0; i < worker.repetitions; ++i) {
      NullStepTimes& times = all.emplace_back();
      stepper.meetOthers(fmt::format("dtf-{}", i));
      times.dtf = timeSteps(worker.steps, [&] { stepper.step(); });
      stepper.meetOthers(fmt::format("raw-{}", i));
      times.raw = timeSteps(worker.steps, [&] { raw.exchange(bytes); });
    }
    stepper.meetOthers("end");
    stepper.finish();
  }
  for (const NullStepTimes& times : all) {
    writeAll(out, times.dtf);
    writeAll(out, times.raw);
  }
}

std::vector<NullStepTimes> readNullStepTimes(const NullStepWorker& worker, const Fd& in,
                                             std::chrono::seconds deadline) {
  const auto steps = static_cast<size_t>(worker.steps);
  std::vector<double> values(2 * steps * static_cast<size_t>(worker.repetitions));
  auto* at = reinterpret_cast<std::byte*>(values.data());
  const SystemClock clock;
  const TimePoint end = clock.now() + deadline;
  for (size_t left = values.size() * sizeof(double); left > 0;) {
    const int wait_ms = std::max(0, static_cast<int>(toSeconds(end - clock.now()) * 1000));
    pollfd ready{in.get(), POLLIN, 0};
    const int polled = ::poll(&ready, 1, wait_ms);
    if (polled < 0 && errno == EINTR) continue;
    if (polled == 0)
      throw Error(ErrorCode::kDeadline, fmt::format("null step: worker {} has not ended after {} s",
                                                    worker.rank, deadline.count()));
    const ssize_t got = ::read(in.get(), at, left);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      throw Error(ErrorCode::kInternal,
                  fmt::format("null step: worker {} ended early", worker.rank));
    at += got;
    left -= static_cast<size_t>(got);
  }
  std::vector<NullStepTimes> all;
  for (auto from = values.begin(); from != values.end(); from += 2 * worker.steps)
    all.push_back({{from, from + worker.steps}, {from + worker.steps, from + 2 * worker.steps}});
  return all;
}

}  // namespace dtf::bench
