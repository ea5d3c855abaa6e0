#pragma once

// The queues of a process, by their names: shared by all sessions that name the same one.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "common/base/byte_budget.h"
#include "common/base/mutex.h"
#include "common/engine/fifo_queue.h"
#include "common/engine/resource_key.h"
#include "common/graph/queue.h"

namespace dtf::engine {

// A queue that has elements or is closed stays until the store ends or its container is reset,
// whichever session made it; any other, as long as somebody uses it.
// Owns: the queues, together with their users.
// Threads: thread-safe.
// Blocks: never.
// Errors: kBadConfig, naming the node, for a queue that is there with other components or another
// capacity; kUnavailable for more than `queues_max`.
class QueueStore {
 public:
  // `budget`: of all elements, perhaps of other things, too.
  QueueStore(size_t queues_max, std::shared_ptr<ByteBudget> budget);
  explicit QueueStore(size_t queues_max = 1024, uint64_t bytes_max = uint64_t{64} << 30);

  // `node` is for messages.
  std::shared_ptr<FifoQueue> use(const ResourceKey& key, const graph::QueueSpec& spec,
                                 const std::string& node);

  // All queues of the container are empty and open from now on, and who waits for them is told.
  void reset(const std::string& container);

  struct Load {
    size_t queues = 0;
    size_t elements = 0;
    uint64_t bytes = 0;  // of these
  };
  Load load() const;

 private:
  void forgetUnused() DTF_REQUIRES(mutex_);

  const size_t queues_max_;
  const std::shared_ptr<ByteBudget> budget_;
  mutable Mutex mutex_;
  std::map<ResourceKey, std::shared_ptr<FifoQueue>> queues_ DTF_GUARDED_BY(mutex_);
};

}  // namespace dtf::engine
