#include "common/engine/fifo_queue.h"

#include <iterator>

#include "common/base/check.h"

namespace dtf::engine {
namespace {

// The bytes of an element; an overflow gives more than any budget has.
uint64_t bytesOf(const graph::QueueSpec& spec) {
  uint64_t bytes = spec.components.size() * FifoQueue::kComponentBytes;
  for (const graph::TensorSpec& component : spec.components) {
    uint64_t own = 0;
    if (__builtin_mul_overflow(static_cast<uint64_t>(component.shape.elements()),
                               dtypeBytes(component.dtype), &own) ||
        __builtin_add_overflow(bytes, own, &bytes))
      return UINT64_MAX;
  }
  return bytes;
}

}  // namespace

FifoQueue::FifoQueue(std::string name, graph::QueueSpec spec, std::shared_ptr<ByteBudget> budget)
    : name_(std::move(name)),
      spec_(std::move(spec)),
      element_bytes_(bytesOf(spec_)),
      budget_(std::move(budget)) {
  DTF_CHECK(!spec_.components.empty() && spec_.capacity > 0 && budget_ != nullptr);
}

FifoQueue::~FifoQueue() {
  MutexLock lock(mutex_);
  // they would never be called back
  DTF_CHECK_MSG(enqueuers_.empty() && dequeuers_.empty(), name_);
}

FifoQueue::Element FifoQueue::newElement() const {
  Element element;
  element.share = budget_->take(element_bytes_, "an element of the queue '" + name_ + "'");
  element.components.reserve(spec_.components.size());
  for (const graph::TensorSpec& component : spec_.components)
    element.components.emplace_back(component.dtype, component.shape);
  return element;
}

FifoQueue::Wait FifoQueue::enqueue(Elements elements, Done done) {
  DTF_CHECK(!elements.empty() && done != nullptr);
  Waiters<Enqueuer>::node_type refused;  // freed without the lock
  Calls calls;
  Wait wait = 0;
  {
    MutexLock lock(mutex_);
    if (closed_) {
      calls.emplace_back(std::move(done),
                         Error(ErrorCode::kOutOfRange,
                               "the queue '" + name_ + "' is closed: nothing enters it any more"));
    } else {
      wait = ++last_wait_;
      enqueuers_.emplace_hint(enqueuers_.end(), wait,
                              Enqueuer{{std::make_move_iterator(elements.begin()),
                                        std::make_move_iterator(elements.end())},
                                       std::move(done)});
      advance(calls);
      refused = refusedOneMore(enqueuers_, wait, calls);
      if (!enqueuers_.contains(wait)) wait = 0;
    }
  }
  make(std::move(calls));
  return wait;
}

FifoQueue::Wait FifoQueue::dequeue(size_t count, Done done) {
  DTF_CHECK(count > 0 && std::cmp_less_equal(count, spec_.capacity) && done != nullptr);
  Calls calls;
  Wait wait = 0;
  {
    MutexLock lock(mutex_);
    wait = ++last_wait_;
    dequeuers_.emplace_hint(dequeuers_.end(), wait, Dequeuer{count, std::move(done)});
    advance(calls);
    refusedOneMore(dequeuers_, wait, calls);
    if (!dequeuers_.contains(wait)) wait = 0;
  }
  make(std::move(calls));
  return wait;
}

// Later operations may be able to proceed.
void FifoQueue::cancel(Wait wait) {
  Waiters<Enqueuer>::node_type enqueuer;  // freed without the lock
  Waiters<Dequeuer>::node_type dequeuer;
  Calls calls;
  {
    MutexLock lock(mutex_);
    enqueuer = enqueuers_.extract(wait);
    dequeuer = dequeuers_.extract(wait);
    advance(calls);
  }
  make(std::move(calls));
}

void FifoQueue::close(bool cancel_pending_enqueues) {
  Waiters<Enqueuer> cancelled;
  Calls calls;
  {
    MutexLock lock(mutex_);
    closed_ = true;
    if (cancel_pending_enqueues) cancelled.swap(enqueuers_);
    for (auto& [wait, each] : cancelled)
      calls.emplace_back(std::move(each.done),
                         Error(ErrorCode::kOutOfRange,
                               "the queue '" + name_ + "' was closed before there was room in it"));
    advance(calls);
  }
  make(std::move(calls));
}

void FifoQueue::reset() {
  std::deque<Element> elements;
  Waiters<Enqueuer> enqueuers;
  Waiters<Dequeuer> dequeuers;
  {
    MutexLock lock(mutex_);
    elements.swap(elements_);
    enqueuers.swap(enqueuers_);
    dequeuers.swap(dequeuers_);
    closed_ = false;
  }
  const Error cause(ErrorCode::kUnavailable, "the container of the queue '" + name_ +
                                                 "' was reset while the step waited for it");
  for (const auto& [wait, each] : enqueuers) each.done(cause);
  for (const auto& [wait, each] : dequeuers) each.done(cause);
}

void FifoQueue::advance(Calls& calls) {
  do {
    letIn(calls);
  } while (giveOut(calls));
}

bool FifoQueue::hasRoom() const {
  return std::cmp_less(elements_.size(), spec_.capacity);
}

void FifoQueue::letIn(Calls& calls) {
  while (!enqueuers_.empty() && hasRoom()) {
    Enqueuer& first = enqueuers_.begin()->second;
    elements_.push_back(std::move(first.elements.front()));
    first.elements.pop_front();
    if (!first.elements.empty()) continue;
    calls.emplace_back(std::move(first.done), Elements());
    enqueuers_.erase(enqueuers_.begin());
  }
}

// Returns whether it has made room.
bool FifoQueue::giveOut(Calls& calls) {
  bool has_given = false;
  while (!dequeuers_.empty()) {
    Dequeuer& first = dequeuers_.begin()->second;
    const bool is_there = elements_.size() >= first.count;
    // closed: all waiting elements have entered, as there was room
    if (!is_there && !closed_) break;
    if (is_there) {
      const auto end = elements_.begin() + static_cast<std::ptrdiff_t>(first.count);
      calls.emplace_back(std::move(first.done), Elements(std::make_move_iterator(elements_.begin()),
                                                         std::make_move_iterator(end)));
      elements_.erase(elements_.begin(), end);
      has_given = true;
    } else {
      calls.emplace_back(
          std::move(first.done),
          Error(ErrorCode::kOutOfRange, "the queue '" + name_ + "' is closed and has " +
                                            std::to_string(elements_.size()) + " of " +
                                            std::to_string(first.count) + " elements"));
    }
    dequeuers_.erase(dequeuers_.begin());
  }
  return has_given;
}

template <class Waiter>
typename FifoQueue::Waiters<Waiter>::node_type FifoQueue::refusedOneMore(Waiters<Waiter>& waiters,
                                                                         Wait last,
                                                                         Calls& calls) const {
  if (waiters.size() <= kWaitsMax) return {};
  auto refused = waiters.extract(last);
  calls.emplace_back(
      std::move(refused.mapped().done),
      Error(ErrorCode::kUnavailable, "the queue '" + name_ + "' is waited for by " +
                                         std::to_string(kWaitsMax) + " steps already"));
  return refused;
}

void FifoQueue::make(Calls calls) {
  for (auto& [done, outcome] : calls) done(std::move(outcome));
}

size_t FifoQueue::size() const {
  MutexLock lock(mutex_);
  return elements_.size();
}

bool FifoQueue::isEmptyAndOpen() const {
  MutexLock lock(mutex_);
  return elements_.empty() && !closed_;
}

uint64_t FifoQueue::bytes() const {
  return size() * element_bytes_;
}

}  // namespace dtf::engine
