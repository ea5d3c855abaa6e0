#pragma once

// A queue where it lives: elements that outlive the steps that put them in and take them out, and
// who waits for room, or for elements.

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
#include "common/graph/queue.h"
#include "common/tensor/tensor.h"

namespace dtf::engine {

// First in, first out: of elements, of those who wait to put some in, and of those who wait to take
// some. Who waits holds up no thread, but whoever comes after him.
//
// Invariants, while nobody changes it: the first who waits to put in finds the queue full; the
// first who waits to take finds too few, and more may come.
//
// Owns: its elements, and those that wait to enter.
// Threads: thread-safe. What is called back is called once, here or in the thread that brings what
// it waits for, without a lock.
// Blocks: never.
// Errors: by callback, kOutOfRange for a queue that is closed, kUnavailable for one that is reset,
// and for who would be one more than kWaitsMax.
class FifoQueue {
 public:
  // A tensor for each component, and their bytes of the budget. Move-only.
  struct Element {
    std::vector<Tensor> components;
    ByteBudget::Share share;
  };
  using Elements = std::vector<Element>;

  // What was asked for has been done: what was taken, or nothing; or it never will be.
  using Outcome = std::variant<Elements, Error>;
  using Done = std::function<void(Outcome outcome)>;

  // Of somebody who waits, or did, for his turn may come at any time; 0: `done` has been called.
  using Wait = uint64_t;

  // What each tensor takes beside its bytes: the object, its shape, what its block is aligned to.
  static constexpr uint64_t kComponentBytes = 256;
  // For room, and as many for elements.
  static constexpr size_t kWaitsMax = 1 << 16;

  // `name`: for messages.
  FifoQueue(std::string name, graph::QueueSpec spec, std::shared_ptr<ByteBudget> budget);
  ~FifoQueue();  // nobody waits any more
  FifoQueue(const FifoQueue&) = delete;
  FifoQueue& operator=(const FifoQueue&) = delete;

  const graph::QueueSpec& spec() const { return spec_; }
  const std::string& name() const { return name_; }

  // With tensors of the components' types and shapes, to be filled. Errors: kUnavailable when the
  // budget has no room.
  Element newElement() const;

  // Puts them in, one after the other, as there is room; done when all are in.
  Wait enqueue(Elements elements, Done done);
  // Takes the first `count`, at most the capacity, when it has so many.
  Wait dequeue(size_t count, Done done);

  // He waits no more, takes nothing, and isn't called back; what he has put in stays. To no effect
  // when his turn has come already.
  void cancel(Wait wait);

  // Nothing more is let in. What waits to enter still does, or is told that it can't.
  void close(bool cancel_pending_enqueues);

  // As it was made: empty and open. Who waits is told so.
  void reset();

  size_t size() const;
  bool isEmptyAndOpen() const;
  uint64_t bytes() const;  // of its elements

 private:
  struct Enqueuer {
    std::deque<Element> elements;  // that are not in yet
    Done done;
  };
  struct Dequeuer {
    size_t count = 0;
    Done done;
  };
  // In the order in which they came: numbers of waits only grow.
  template <class Waiter>
  using Waiters = std::map<Wait, Waiter>;
  using Calls = std::vector<std::pair<Done, Outcome>>;

  // To be made without the lock, in their order.
  static void make(Calls calls);
  // Restores the invariants: lets in and gives out what can be.
  void advance(Calls& calls) DTF_REQUIRES(mutex_);
  void letIn(Calls& calls) DTF_REQUIRES(mutex_);
  bool giveOut(Calls& calls) DTF_REQUIRES(mutex_);
  bool hasRoom() const DTF_REQUIRES(mutex_);
  // Takes him out, who came last, if he is one more than may wait. Nobody is behind him.
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
