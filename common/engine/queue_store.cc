#include "common/engine/queue_store.h"

#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/error.h"

namespace dtf::engine {
namespace {

// Returns "of 4 elements (float32[2], int32[])".
std::string text(const graph::QueueSpec& spec) {
  std::string components;
  for (const graph::TensorSpec& each : spec.components)
    components +=
        (components.empty() ? "" : ", ") + std::string(dtypeName(each.dtype)) + each.shape.str();
  return "of " + std::to_string(spec.capacity) + " elements (" + components + ")";
}

// Returns whether only the store refers to the queue, and it is empty and open.
bool isUnused(const std::shared_ptr<FifoQueue>& queue) {
  return queue.use_count() == 1 && queue->isEmptyAndOpen();
}

}  // namespace

QueueStore::QueueStore(size_t queues_max, std::shared_ptr<ByteBudget> budget)
    : queues_max_(queues_max), budget_(std::move(budget)) {
  DTF_CHECK(queues_max > 0 && budget_ != nullptr);
}

QueueStore::QueueStore(size_t queues_max, uint64_t bytes_max)
    : QueueStore(queues_max, ByteBudget::create(bytes_max, "this process")) {}

std::shared_ptr<FifoQueue> QueueStore::use(const ResourceKey& key, const graph::QueueSpec& spec,
                                           const std::string& node) {
  MutexLock lock(mutex_);
  const auto known = queues_.find(key);
  if (known != queues_.end()) {
    if (known->second->spec() == spec) return known->second;
    if (!isUnused(known->second))
      throw Error(ErrorCode::kBadConfig,
                  "node '" + node + "' (FIFOQueue) is " + text(spec) + ", but the queue " +
                      key.text() + " is " + text(known->second->spec()) +
                      " since another graph made it; give it another shared_name or container");
    queues_.erase(known);
  }
  if (queues_.size() >= queues_max_) forgetUnused();
  if (queues_.size() >= queues_max_)
    throw Error(ErrorCode::kUnavailable, "node '" + node + "' (FIFOQueue) is one more than the " +
                                             std::to_string(queues_max_) +
                                             " queues that a task may have");
  auto made = std::make_shared<FifoQueue>(key.name, spec, budget_);
  queues_.emplace(key, made);
  return made;
}

// Waiting operations are called back without the lock.
void QueueStore::reset(const std::string& container) {
  std::vector<std::shared_ptr<FifoQueue>> queues;
  {
    MutexLock lock(mutex_);
    for (const auto& [key, queue] : queues_)
      if (key.container == container) queues.push_back(queue);
  }
  for (const auto& queue : queues) queue->reset();
  queues.clear();
  MutexLock lock(mutex_);
  forgetUnused();
}

// Users get queues under the lock, so an unused queue stays unused.
void QueueStore::forgetUnused() {
  std::erase_if(queues_, [](const auto& entry) { return isUnused(entry.second); });
}

QueueStore::Load QueueStore::load() const {
  MutexLock lock(mutex_);
  Load load;
  for (const auto& [key, queue] : queues_) {
    ++load.queues;
    load.elements += queue->size();
    load.bytes += queue->bytes();
  }
  return load;
}

}  // namespace dtf::engine
