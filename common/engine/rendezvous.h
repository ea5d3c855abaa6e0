#pragma once

// The meeting point of a step's parts: one part sends a tensor under a key, another receives it, in
// either order. Within a process a tensor is passed by reference; a tensor from another process is
// sent here by the code that received it.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <variant>

#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"

namespace dtf::engine {

// One tensor of one step. Edges are numbered when the parts are registered; a step's number is
// never reused in a session. The sender's process is part of the key, so messages of a dead process
// match nothing. Value type.
struct RendezvousKey {
  uint64_t step = 0;
  Incarnation source;
  uint32_t edge = 0;
  auto operator<=>(const RendezvousKey&) const = default;
};

// The bytes of a tensor, dense and row-major. A view that is valid until the step ends, or while
// `owner` lives, if there is one.
struct Parcel {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner = nullptr;  // null: the sender keeps the bytes until the end
};

// The contents of a rendezvous. Value type.
struct RendezvousLoad {
  size_t steps = 0;          // known here
  size_t parked = 0;         // parcels not received yet
  uint64_t owned_bytes = 0;  // of these, in memory of their own
  size_t waiting = 0;        // receives
};

// Owns: parcels not received yet, bounded in number and bytes.
// Threads: thread-safe. Callbacks run in the thread that completes their wait, without a lock.
// Blocks: never.
// Errors: outcomes that matter to a caller are values; every waiting receive gets the cause of an
// abort.
class Rendezvous {
 public:
  struct Limits {
    size_t parcels = 1 << 16;            // parked or waited for, in all steps
    uint64_t bytes = uint64_t{8} << 30;  // owned by parked parcels
    size_t ended_steps = 1024;           // remembered; every older step counts as ended
    uint64_t cause_bytes = 16 << 20;     // of the causes of aborts; the oldest are forgotten
  };

  enum class Sent : uint8_t {
    kTaken,      // parked, or passed to a waiting receive
    kDuplicate,  // the key was sent before
    kOver,       // the step has ended or was aborted: there is no receiver
    kFull,       // a limit is reached: the step can't continue
  };

  // A parcel, or the reason why there is none.
  using Arrival = std::variant<Parcel, Error>;
  using Callback = std::function<void(Arrival arrival)>;

  Rendezvous() : Rendezvous(Limits()) {}
  explicit Rendezvous(Limits limits) : limits_(limits) {}
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  // Sends a parcel. The step need not have begun: an early parcel is parked. A key is sent once,
  // even after it was received.
  Sent send(const RendezvousKey& key, Parcel parcel);

  // Calls back once: immediately if the parcel is there, if the step was aborted (with its root
  // cause) or has ended, if the key is received a second time, or if a limit is reached; otherwise
  // when one of these happens.
  void receive(const RendezvousKey& key, Callback callback);

  // Ends a step with `cause`, the root cause shown to the user: a later abort of the same step has
  // no effect. All waiting and later receives get it.
  void abort(uint64_t step, const Error& cause);

  // Frees the tensors of a step; waiting receives get an error.
  void end(uint64_t step);

  // Returns the error that a receive of this step would get at once: its end, or the cause of its
  // abort. nullopt: the step is not over.
  std::optional<Error> whyOver(uint64_t step) const;

  RendezvousLoad load() const;

 private:
  struct Slot {
    std::optional<Parcel> parcel;
    Callback callback;  // of a waiting receive
    bool sent = false, received = false;
  };
  using Slots = std::map<RendezvousKey, Slot>;

  bool isOver(uint64_t step) const DTF_REQUIRES(mutex_);
  bool isFull(const Parcel* parcel) const DTF_REQUIRES(mutex_);
  Slot* find(const RendezvousKey& key) DTF_REQUIRES(mutex_);
  Error causeOf(uint64_t step) const DTF_REQUIRES(mutex_);
  void forget(std::optional<Error>& cause) DTF_REQUIRES(mutex_);
  void forgetOldest() DTF_REQUIRES(mutex_);
  std::optional<Arrival> take(const RendezvousKey& key, Callback& callback);
  void finish(uint64_t step, std::optional<Error> cause);

  const Limits limits_;
  mutable Mutex mutex_;
  std::map<uint64_t, Slots> steps_ DTF_GUARDED_BY(mutex_);
  // By step: its root cause, if it was aborted. The newest steps.
  std::map<uint64_t, std::optional<Error>> over_ DTF_GUARDED_BY(mutex_);
  uint64_t cause_bytes_ DTF_GUARDED_BY(mutex_) = 0;  // in over_
  uint64_t over_below_ DTF_GUARDED_BY(mutex_) = 0;   // steps below this one are over, too
  RendezvousLoad load_ DTF_GUARDED_BY(mutex_);
};

}  // namespace dtf::engine
