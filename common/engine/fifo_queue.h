#pragma once

// A queue: elements that outlive the steps that enqueue and dequeue them, and operations that wait
// for room or for elements.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/byte_budget.h"
#include "common/base/error.h"
#include "common/base/mutex.h"
#include "common/engine/awaited.h"
#include "common/graph/queue.h"
#include "common/tensor/tensor.h"

namespace dtf::engine {

// First in, first out: elements, waiting enqueues and waiting dequeues. A waiting operation blocks
// no thread, only later operations of its kind.
// //
// Invariants between changes: the first waiting enqueue finds the queue full; the first waiting
// dequeue finds too few elements, and more may come.
// //
// Owns: its elements, and waiting ones.
// Threads: thread-safe. Callbacks run once, in the caller or in the thread that completes the
// operation, without a lock.
// Blocks: never.
// Errors: by callback, kOutOfRange for a closed queue, kUnavailable for one that is reset, and
// beyond kWaitsMax.
class FifoQueue final : public Awaited {
 public:
  // A tensor for each component, with their share of the budget. Move-only.
  struct Element {
    std::vector<Tensor> components;
    ByteBudget::Share share;
  };
  using Elements = std::vector<Element>;

  // The result of an operation: the dequeued elements, or none for an enqueue; or an error.
  using Outcome = std::variant<Elements, Error>;
  using Done = std::function<void(Outcome outcome)>;

  // Memory of each tensor besides its bytes: the object, its shape, alignment.
  static constexpr uint64_t kComponentBytes = 256;
  // Waiting enqueues, and as many dequeues.
  static constexpr size_t kWaitsMax = 1 << 16;

  // `name`: for messages.
  FifoQueue(std::string name, graph::QueueSpec spec, std::shared_ptr<ByteBudget> budget);
  ~FifoQueue();  // no operation may wait
  FifoQueue(const FifoQueue&) = delete;
  FifoQueue& operator=(const FifoQueue&) = delete;

  const graph::QueueSpec& spec() const { return spec_; }
  const std::string& name() const { return name_; }

  // Returns an element to fill, with zeroed tensors of the components' types and shapes. Errors:
  // kUnavailable if the budget has no room.
  Element newElement() const;

  // Enqueues elements one after the other, as there is room; done when all are in.
  Wait enqueue(Elements elements, Done done);
  // Dequeues the first `count` elements, at most the capacity, once there are so many.
  Wait dequeue(size_t count, Done done);

  // The operation takes nothing, and `done` isn't called; elements already enqueued stay.
  void cancel(Wait wait) override;

  // Rejects new elements. Waiting enqueues still enter, or fail if cancelled.
  void close(bool cancel_pending_enqueues);

  // Empties and reopens the queue. Waiting operations fail.
  void reset();

  size_t size() const;
  bool isEmptyAndOpen() const;
  uint64_t bytes() const;  // of its elements

 private:
  struct Enqueuer {
    std::deque<Element> elements;  // not enqueued yet
    Done done;
  };
  struct Dequeuer {
    size_t count = 0;
    Done done;
  };
  // In order of arrival: the numbers of waits only grow.
  template <class Waiter>
  using Waiters = std::map<Wait, Waiter>;
  using Calls = std::vector<std::pair<Done, Outcome>>;

  // Calls the callbacks in order; call it without the lock.
  static void make(Calls calls);
  // Restores the invariants: moves elements in and out as far as possible.
  void advance(Calls& calls) DTF_REQUIRES(mutex_);
  void letIn(Calls& calls) DTF_REQUIRES(mutex_);
  bool giveOut(Calls& calls) DTF_REQUIRES(mutex_);
  bool hasRoom() const DTF_REQUIRES(mutex_);
  // Removes the last waiting operation if it exceeds kWaitsMax; none is behind it.
  template <class Waiter>
  typename Waiters<Waiter>::node_type refusedOneMore(Waiters<Waiter>& waiters, Wait last,
                                                     Calls& calls) const;

  const std::string name_;
  const graph::QueueSpec spec_;
  const uint64_t element_bytes_;
  const std::shared_ptr<ByteBudget> budget_;  // shared with elements that outlive the queue
  mutable Mutex mutex_;
  std::deque<Element> elements_ DTF_GUARDED_BY(mutex_);
  Waiters<Enqueuer> enqueuers_ DTF_GUARDED_BY(mutex_);
  Waiters<Dequeuer> dequeuers_ DTF_GUARDED_BY(mutex_);
  Wait last_wait_ DTF_GUARDED_BY(mutex_) = 0;
  bool closed_ DTF_GUARDED_BY(mutex_) = false;
};

}  // namespace dtf::engine
