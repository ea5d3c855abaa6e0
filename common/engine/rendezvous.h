#pragma once

// Where the parts of a step meet: one part leaves a tensor under a key, another takes it, in either
// order. In one process a tensor is handed over by reference; what comes from another process will
// be left here by whoever received it.

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

// One tensor of one step. Edges have numbers since their names were made known once, when the parts
// were registered; a step's number is never used again in a session. The sender's process is part
// of the key, so what a dead one sent matches nothing. Value type.
struct RendezvousKey {
  uint64_t step = 0;
  Incarnation source;
  uint32_t edge = 0;
  auto operator<=>(const RendezvousKey&) const = default;
};

// The bytes of a tensor, dense and row-major. A view that is good until the step ends, or as long
// as `owner` lives, where there is one.
struct Parcel {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner = nullptr;  // null: the sender keeps the bytes until the end
};

// What a rendezvous holds. Value type.
struct RendezvousLoad {
  size_t steps = 0;          // that are known here
  size_t parked = 0;         // parcels that nobody took yet
  uint64_t owned_bytes = 0;  // of these, in memory of their own
  size_t waiting = 0;        // receives
};

// Owns: parcels that nobody took yet, their number and bytes bounded.
// Threads: thread-safe. Callbacks run in the thread that brings what they wait for, without a lock.
// Blocks: never.
// Errors: those that matter to a caller are values; an abort's is what every waiting receive gets.
class Rendezvous {
 public:
  struct Limits {
    size_t parcels = 1 << 16;            // parked or waited for, of all steps
    uint64_t bytes = uint64_t{8} << 30;  // owned by parked parcels
    size_t ended_steps = 1024;           // remembered; every older one counts as ended
    uint64_t cause_bytes = 16 << 20;     // of why these were aborted; the oldest are forgotten
  };

  enum class Sent : uint8_t {
    kTaken,      // parked, or given to who waited
    kDuplicate,  // the key has been sent before
    kOver,       // the step has ended or was aborted: nobody will take it
    kFull,       // a limit is reached: the step can't go on
  };

  // Either a parcel or why there will be none.
  using Arrival = std::variant<Parcel, Error>;
  using Callback = std::function<void(Arrival arrival)>;

  Rendezvous() : Rendezvous(Limits()) {}
  explicit Rendezvous(Limits limits) : limits_(limits) {}
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  // A step need not have begun: what comes early is parked. A key is sent once, even after it was
  // taken.
  Sent send(const RendezvousKey& key, Parcel parcel);

  // Calls back once: here when the parcel is there already, when the step was aborted (its root
  // cause) or has ended, when the key is received a second time, or a limit is reached; else when
  // one of these comes about.
  void receive(const RendezvousKey& key, Callback callback);

  // Ends a step for `cause`, the root cause as the user is to see it: a later abort of the same
  // step changes nothing. All who wait are called back with it, and so is whoever asks later.
  void abort(uint64_t step, const Error& cause);

  // Frees what the step has left; who still waits is called back with an error.
  void end(uint64_t step);

  // What a receive of this step would be told at once: that it has ended, or why it was aborted.
  // nullopt: it is not over.
  std::optional<Error> whyOver(uint64_t step) const;

  RendezvousLoad load() const;

 private:
  struct Slot {
    std::optional<Parcel> parcel;
    Callback callback;  // of who waits
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
  // By step: its root cause, when it was aborted. The newest.
  std::map<uint64_t, std::optional<Error>> over_ DTF_GUARDED_BY(mutex_);
  uint64_t cause_bytes_ DTF_GUARDED_BY(mutex_) = 0;  // in over_
  uint64_t over_below_ DTF_GUARDED_BY(mutex_) = 0;   // steps below this one are over, too
  RendezvousLoad load_ DTF_GUARDED_BY(mutex_);
};

}  // namespace dtf::engine
