#include "common/engine/rendezvous.h"

#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"

namespace dtf::engine {
namespace {

std::string textOf(const RendezvousKey& key) {
  return "edge " + std::to_string(key.edge) + " of step " + std::to_string(key.step);
}

uint64_t ownedBytes(const Parcel& parcel) {
  return parcel.owner == nullptr ? 0 : parcel.bytes.size();
}

}  // namespace

Rendezvous::~Rendezvous() {
  MutexLock lock(mutex_);
  DTF_CHECK(load_.waiting == 0);  // who still waits would never hear of it
}

bool Rendezvous::isOver(uint64_t step) const {
  return over_.contains(step) || (step < over_below_ && !steps_.contains(step));
}

bool Rendezvous::isFull(const Parcel* parcel) const {
  return load_.parked + load_.waiting >= limits_.parcels ||
         (parcel != nullptr && load_.owned_bytes + ownedBytes(*parcel) > limits_.bytes);
}

Rendezvous::Sent Rendezvous::send(const RendezvousKey& key, Parcel parcel) {
  Callback waiting;
  {
    MutexLock lock(mutex_);
    if (isOver(key.step)) return Sent::kOver;
    Slot& slot = slotOf(key);
    if (slot.sent) return Sent::kDuplicate;
    if (!slot.received) {
      if (isFull(&parcel)) return Sent::kFull;
      slot.sent = true;
      ++load_.parked;
      load_.owned_bytes += ownedBytes(parcel);
      slot.parcel = std::move(parcel);
      return Sent::kTaken;
    }
    slot.sent = true;
    DTF_CHECK(slot.callback != nullptr && load_.waiting > 0);
    --load_.waiting;
    waiting = std::exchange(slot.callback, nullptr);
  }
  waiting(std::move(parcel));
  return Sent::kTaken;
}

void Rendezvous::receive(const RendezvousKey& key, Callback callback) {
  DTF_CHECK(callback != nullptr);
  if (std::optional<Arrival> arrival = take(key, callback)) callback(*std::move(arrival));
}

// What is known at once; nullopt: the callback is kept.
std::optional<Rendezvous::Arrival> Rendezvous::take(const RendezvousKey& key, Callback& callback) {
  MutexLock lock(mutex_);
  if (isOver(key.step)) return whyOver(key.step);
  Slot& slot = slotOf(key);
  if (slot.received) {
    return Error(ErrorCode::kInternal, "The " + textOf(key) + " is received twice.");
  }
  if (slot.sent) {
    slot.received = true;
    DTF_CHECK(slot.parcel.has_value() && load_.parked > 0);
    --load_.parked;
    load_.owned_bytes -= ownedBytes(*slot.parcel);
    return *std::exchange(slot.parcel, std::nullopt);
  }
  if (isFull(nullptr)) {
    return Error(ErrorCode::kUnavailable,
                 "The " + textOf(key) + " can't be waited for: " + std::to_string(limits_.parcels) +
                     " tensors are on their way already.");
  }
  slot.received = true;
  slot.callback = std::move(callback);
  ++load_.waiting;
  return std::nullopt;
}

Rendezvous::Arrival Rendezvous::whyOver(uint64_t step) const {
  const auto known = over_.find(step);
  if (known != over_.end() && known->second) return *known->second;
  return Error(ErrorCode::kUnavailable, "Step " + std::to_string(step) + " has ended.");
}

void Rendezvous::abort(uint64_t step, const Error& cause) {
  finish(step, cause);
}

void Rendezvous::end(uint64_t step) {
  finish(step, std::nullopt);
}

void Rendezvous::finish(uint64_t step, std::optional<Error> cause) {
  Slots slots;  // freed without the lock
  std::optional<Arrival> why;
  {
    MutexLock lock(mutex_);
    if (const auto known = steps_.find(step); known != steps_.end()) {
      slots = std::move(known->second);
      steps_.erase(known);
    }
    if (!isOver(step)) over_.emplace(step, std::move(cause));
    why = whyOver(step);
    while (over_.size() > limits_.ended_steps) {
      over_below_ = over_.begin()->first + 1;
      over_.erase(over_.begin());
    }
    for (const auto& [key, slot] : slots) {
      if (slot.callback) --load_.waiting;
      if (!slot.parcel) continue;
      --load_.parked;
      load_.owned_bytes -= ownedBytes(*slot.parcel);
    }
  }
  for (auto& [key, slot] : slots) {
    if (slot.callback) slot.callback(*why);
  }
}

RendezvousLoad Rendezvous::load() const {
  MutexLock lock(mutex_);
  RendezvousLoad load = load_;
  load.steps = steps_.size();
  return load;
}

}  // namespace dtf::engine
