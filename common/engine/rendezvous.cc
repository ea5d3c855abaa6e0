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
  DTF_CHECK(load_.waiting == 0);  // a waiting receive would never be called back
}

bool Rendezvous::isOver(uint64_t step) const {
  return over_.contains(step) || (step < over_below_ && !steps_.contains(step));
}

bool Rendezvous::isFull(const Parcel* parcel) const {
  return load_.parked + load_.waiting >= limits_.parcels ||
         (parcel != nullptr && load_.owned_bytes + ownedBytes(*parcel) > limits_.bytes);
}

Rendezvous::Slot* Rendezvous::find(const RendezvousKey& key) {
  const auto step = steps_.find(key.step);
  if (step == steps_.end()) return nullptr;
  const auto slot = step->second.find(key);
  return slot == step->second.end() ? nullptr : &slot->second;
}

// A rejected send leaves nothing behind.
Rendezvous::Sent Rendezvous::send(const RendezvousKey& key, Parcel parcel) {
  Callback waiting;
  {
    MutexLock lock(mutex_);
    if (isOver(key.step)) return Sent::kOver;
    Slot* const known = find(key);
    if (known != nullptr && known->sent) return Sent::kDuplicate;
    if (known == nullptr) {
      if (isFull(&parcel)) return Sent::kFull;
      Slot& slot = steps_[key.step][key];
      slot.sent = true;
      ++load_.parked;
      load_.owned_bytes += ownedBytes(parcel);
      slot.parcel = std::move(parcel);
      return Sent::kTaken;
    }
    known->sent = true;
    DTF_CHECK(known->received && known->callback != nullptr && load_.waiting > 0);
    --load_.waiting;
    waiting = std::exchange(known->callback, nullptr);
  }
  waiting(std::move(parcel));
  return Sent::kTaken;
}

void Rendezvous::receive(const RendezvousKey& key, Callback callback) {
  DTF_CHECK(callback != nullptr);
  if (std::optional<Arrival> arrival = take(key, callback)) callback(*std::move(arrival));
}

// Returns an immediate result; nullopt: the callback is kept.
std::optional<Rendezvous::Arrival> Rendezvous::take(const RendezvousKey& key, Callback& callback) {
  MutexLock lock(mutex_);
  if (isOver(key.step)) return causeOf(key.step);
  if (Slot* const known = find(key)) {
    if (known->received)
      return Error(ErrorCode::kInternal, "The " + textOf(key) + " is received twice.");
    known->received = true;
    DTF_CHECK(known->sent && known->parcel.has_value() && load_.parked > 0);
    --load_.parked;
    load_.owned_bytes -= ownedBytes(*known->parcel);
    return *std::exchange(known->parcel, std::nullopt);
  }
  if (isFull(nullptr)) {
    return Error(ErrorCode::kUnavailable,
                 "The " + textOf(key) + " can't be waited for: " + std::to_string(limits_.parcels) +
                     " tensors are on their way already.");
  }
  Slot& slot = steps_[key.step][key];
  slot.received = true;
  slot.callback = std::move(callback);
  ++load_.waiting;
  return std::nullopt;
}

Error Rendezvous::causeOf(uint64_t step) const {
  const auto known = over_.find(step);
  if (known != over_.end() && known->second) return *known->second;
  return {ErrorCode::kUnavailable, "Step " + std::to_string(step) + " has ended."};
}

std::optional<Error> Rendezvous::whyOver(uint64_t step) const {
  MutexLock lock(mutex_);
  if (!isOver(step)) return std::nullopt;
  return causeOf(step);
}

void Rendezvous::forget(std::optional<Error>& cause) {
  if (cause) cause_bytes_ -= cause->message().size();
  cause = std::nullopt;
}

// Bounds memory: a client may abort steps that never begin, each with a cause of megabytes.
void Rendezvous::forgetOldest() {
  while (over_.size() > limits_.ended_steps) {
    forget(over_.begin()->second);
    over_below_ = over_.begin()->first + 1;
    over_.erase(over_.begin());
  }
  for (auto oldest = over_.begin(); cause_bytes_ > limits_.cause_bytes; ++oldest) {
    DTF_CHECK(oldest != over_.end());
    forget(oldest->second);
  }
}

void Rendezvous::abort(uint64_t step, const Error& cause) {
  finish(step, cause);
}

void Rendezvous::end(uint64_t step) {
  finish(step, std::nullopt);
}

void Rendezvous::finish(uint64_t step, std::optional<Error> cause) {
  Slots slots;  // freed without the lock
  std::optional<Error> why;
  {
    MutexLock lock(mutex_);
    if (const auto known = steps_.find(step); known != steps_.end()) {
      slots = std::move(known->second);
      steps_.erase(known);
    }
    if (!isOver(step)) {
      if (cause) cause_bytes_ += cause->message().size();
      over_.emplace(step, std::move(cause));
    }
    why = causeOf(step);
    forgetOldest();
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
