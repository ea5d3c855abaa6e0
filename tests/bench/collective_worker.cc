#include "tests/bench/collective_worker.h"

#include <fmt/core.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <exception>

#include "common/base/error.h"
#include "common/base/thread.h"
#include "common/cluster/options.h"
#include "common/host/hosted_shard.h"
#include "common/net/listener.h"
#include "common/net/reactor.h"
#include "tests/bench/child.h"
#include "tests/bench/null_stepper.h"

namespace dtf::bench {

namespace {

constexpr size_t kLine = 64;             // of a cache, and of the arrival counter
constexpr int kSpinsBeforeYield = 4000;  // some 10 us; the ranks may be more than the cores
constexpr float kRate = 0.01F;

void* mapShared(size_t bytes) {
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw Error(ErrorCode::kUnavailable, "cannot map shared memory");
  return memory;
}

// The shard that a worker hosts, with the loop that serves it, on this thread.
class Host {
 public:
  Host(const CollectiveWorker& worker, Fd listening)
      : shard_(taskOf(worker), reactor_, loop_, {}),
        listener_(
            reactor_.port, std::move(listening),
            [this](net::AcceptedSocket socket, net::ConnectionKind kind, const std::string& peer) {
              shard_.serve(std::move(socket), kind, peer);
            }) {}

  // Serves until all workers have left the job, while `body` runs on a thread of its own.
  void run(const std::function<void()>& body) {
    std::exception_ptr failure;
    shard_.server().start([] {}, [this] { reactor_.stop(); });
    Thread thread("bench-step", [&] {
      try {
        body();
      } catch (...) {
        failure = std::current_exception();
        reactor_.stop();
      }
    });
    reactor_.run();
    thread.join();
    if (failure) std::rethrow_exception(failure);
    shard_.result();
  }

 private:
  static cluster::TaskOptions taskOf(const CollectiveWorker& worker) {
    cluster::TaskOptions task;
    task.task = {JobKind::kWorker, worker.rank};
    task.job = worker.job;
    return task;
  }

  net::Reactor reactor_;
  net::ReactorLoop loop_{reactor_};
  host::HostedShard shard_;
  net::Listener listener_;
};

}  // namespace

SharedUpdate::SharedUpdate(uint32_t ranks, uint64_t elements)
    : ranks_(ranks),
      elements_(elements),
      mapped_(kLine + (1 + ranks) * elements * sizeof(float)),
      memory_(mapShared(mapped_)),
      arrived_(new (memory_) std::atomic<uint64_t>(0)),
      parameters_(reinterpret_cast<float*>(static_cast<std::byte*>(memory_) + kLine)),
      gradients_(parameters_ + elements) {}

SharedUpdate::~SharedUpdate() {
  ::munmap(memory_, mapped_);
}

void SharedUpdate::meet(uint64_t number) {
  arrived_->fetch_add(1, std::memory_order_acq_rel);
  for (int spins = 0; arrived_->load(std::memory_order_acquire) < number * ranks_; ++spins)
    if (spins > kSpinsBeforeYield) ::sched_yield();
}

void SharedUpdate::update(uint32_t rank) {
  // Every call meets twice, so the count of a rank's own arrivals follows from the total.
  const uint64_t before = arrived_->load(std::memory_order_acquire) / (2 * ranks_) * 2;
  meet(before + 1);
  const uint64_t share = elements_ / ranks_;
  const uint64_t from = rank * share;
  const uint64_t to = rank + 1 == ranks_ ? elements_ : from + share;
  float* const parameters = parameters_;
  const float rate = kRate / static_cast<float>(ranks_);
  if (ranks_ == 2) {
    const float* const a = gradients(0);
    const float* const b = gradients(1);
    for (uint64_t i = from; i < to; ++i) parameters[i] -= rate * (a[i] + b[i]);
  } else {
    for (uint64_t i = from; i < to; ++i) {
      float sum = gradients_[i];
      for (uint32_t other = 1; other < ranks_; ++other) sum += gradients_[other * elements_ + i];
      parameters[i] -= rate * sum;
    }
  }
  meet(before + 2);
}

void runCollectiveWorker(const CollectiveWorker& worker, Fd listening, SharedUpdate& limit,
                         const Fd& out) {
  std::vector<CollectiveTimes> all;
  Host host(worker, std::move(listening));
  host.run([&] {
    std::memset(limit.gradients(worker.rank), 0, limit.bytes());
    std::vector<float> copy(limit.bytes() / sizeof(float), 1);
    NullStepper stepper(worker.job, worker.rank, worker.elements);
    for (int i = 0; i < worker.repetitions; ++i) {
      CollectiveTimes& times = all.emplace_back();
      stepper.meetOthers(fmt::format("dtf-{}", i));
      times.dtf = timeSteps(worker.steps, [&] { stepper.step(); });
      stepper.meetOthers(fmt::format("limit-{}", i));
      times.limit = timeSteps(worker.steps, [&] { limit.update(worker.rank); });
      stepper.meetOthers(fmt::format("copy-{}", i));
      times.copy = timeSteps(worker.steps, [&] {
        std::memcpy(copy.data(), limit.gradients(worker.rank), limit.bytes());
      });
    }
    stepper.meetOthers("end");
    stepper.finish();
  });
  for (const CollectiveTimes& times : all) {
    writeValues(out, times.dtf);
    writeValues(out, times.limit);
    writeValues(out, times.copy);
  }
}

}  // namespace dtf::bench
