#pragma once

// The queues of a process by name, shared by all sessions that use the same name.

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
// whichever session made it; any other, while it is in use.
// Owns: the queues, together with their users.
// Threads: thread-safe.
// Blocks: never.
// Errors: kBadConfig with the node for an existing queue with other components or capacity;
// kUnavailable for more than `queues_max`.
class QueueStore {
 public:
  // `budget`: for all elements, possibly shared with other uses.
  QueueStore(size_t queues_max, std::shared_ptr<ByteBudget> budget);
  explicit QueueStore(size_t queues_max = 1024, uint64_t bytes_max = uint64_t{64} << 30);

  // `node` is for messages.
  std::shared_ptr<FifoQueue> use(const ResourceKey& key, const graph::QueueSpec& spec,
                                 const std::string& node);

  // Empties and reopens all queues of the container; waiting operations fail.
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
