#pragma once

// Runs parameter updates on compute threads, so that an io loop runs none but small ones
// (optimizer::kInPlaceBytesMax).

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "common/base/mutex.h"
#include "common/base/thread.h"
#include "common/net/loop.h"
#include "common/optimizer/parameter_store.h"

namespace dtf::host {

// Owns: the threads, made at the first update that needs them.
// Borrows: `loop` (must outlive this).
// Threads: loop-thread only. The queue holds the parts of an update of the shard, and of one of the
// replica.
// Blocks: the destructor, until the running parts have ended.
class ComputeRunner final : public optimizer::UpdateRunner {
 public:
  explicit ComputeRunner(net::Loop& loop);
  ~ComputeRunner() override;
  void start(std::shared_ptr<optimizer::UpdateJob> job, std::function<void()> done) override;

 private:
  // The state that the parts of one update share.
  struct Update {
    std::shared_ptr<optimizer::UpdateJob> job;
    std::function<void()> finished;  // called by the thread that runs the last part
    std::atomic<uint64_t> left{0};   // parts of the pass under way
  };
  struct Part {
    std::shared_ptr<Update> update;
    bool measure = false;
    uint64_t begin = 0, end = 0;
  };
  // Queues all parts of one pass. A job that needs measuring has two: the measuring pass comes
  // first.
  void enqueue(const std::shared_ptr<Update>& update, bool measure);
  void run(const Part& part);
  void work();

  net::Loop& loop_;
  Mutex mu_;
  CondVar changed_;
  std::deque<Part> parts_ DTF_GUARDED_BY(mu_);
  bool stopping_ DTF_GUARDED_BY(mu_) = false;
  std::vector<Thread> threads_;
};

}  // namespace dtf::host
