#include "common/host/compute_runner.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "common/base/check.h"

namespace dtf::host {

namespace {

// 256 KiB of each array: gradient, parameters and slots of a part stay in a core's cache between
// read and write.
constexpr uint64_t kPartElements = 64 << 10;

// Half of the cores: io threads, and the workers of this host, need the others. A machine with two
// cores gets two threads, since a worker that waits for an update uses no core.
size_t threadCount() {
  const size_t cores = std::thread::hardware_concurrency();
  return std::clamp<size_t>(cores / 2, std::clamp<size_t>(cores, 1, 2), 8);
}

}  // namespace

ComputeRunner::ComputeRunner(net::Loop& loop) : loop_(loop) {}

ComputeRunner::~ComputeRunner() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
    parts_.clear();
  }
  changed_.notifyAll();
  threads_.clear();
}

void ComputeRunner::start(std::shared_ptr<optimizer::UpdateJob> job, std::function<void()> done) {
  DTF_CHECK(job != nullptr && done != nullptr);
  while (threads_.size() < threadCount())
    threads_.emplace_back("psd-compute" + std::to_string(threads_.size()), [this] { work(); });
  auto update = std::make_shared<Update>();
  update->finished = [this, done = std::move(done)] { loop_.post(done); };
  update->job = std::move(job);
  enqueue(update, update->job->needsMeasuring());
}

void ComputeRunner::enqueue(const std::shared_ptr<Update>& update, bool measure) {
  const uint64_t elements = update->job->elements();
  const uint64_t parts = std::max<uint64_t>(1, (elements + kPartElements - 1) / kPartElements);
  DTF_CHECK(update->left == 0);  // the measuring pass, if any, is done
  update->left = parts;
  {
    MutexLock lock(mu_);
    for (uint64_t i = 0; i < parts; ++i)
      parts_.push_back(
          {update, measure, i * kPartElements, std::min(elements, (i + 1) * kPartElements)});
  }
  changed_.notifyAll();
}

void ComputeRunner::run(const Part& part) {
  Update& update = *part.update;
  DTF_CHECK(part.begin <= part.end && part.end <= update.job->elements());
  if (part.measure) {
    update.job->measure(part.begin, part.end);
  } else {
    update.job->run(part.begin, part.end);
  }
  if (update.left.fetch_sub(1) != 1) return;
  if (part.measure) return enqueue(part.update, false);
  update.finished();
}

void ComputeRunner::work() {
  for (;;) {
    Part part;
    {
      MutexLock lock(mu_);
      while (parts_.empty() && !stopping_) changed_.wait(mu_);
      if (stopping_) return;
      part = std::move(parts_.front());
      parts_.pop_front();
    }
    run(part);
  }
}

}  // namespace dtf::host
