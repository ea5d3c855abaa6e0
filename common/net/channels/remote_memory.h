#pragma once

// Memory of one host that another host's network card reads and writes, over UCX. Two processes
// exchange addresses and arenas in messages of another connection, which also has all words: this
// channel moves values alone. It has never run on a card: the tests run the same calls over TCP
// and over the memory of one host.

#include <kj/async.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/net/loop.h"
#include "common/net/polled.h"

namespace dtf::net {

// The largest address of a channel, and the largest card key, that a peer may send.
inline constexpr size_t kRemoteAddressBytesMax = 16384;
inline constexpr size_t kCardKeyBytesMax = 4096;

// The name under which a peer reads or writes an arena of another process. Value type.
struct RemoteArena {
  uint64_t key = 0;      // unique among the arenas of one channel; never 0
  uint64_t address = 0;  // in the memory of its process
  uint64_t bytes = 0;
  std::vector<std::byte> card_key;  // UCX's rkey, which permits the access
};

// The access of peers to memory that is registered.
enum class RemoteAccess : uint8_t {
  kNone,   // only this host's card uses it
  kRead,   // a peer with its card key may read it
  kWrite,  // may write it
};

// Memory that cards may read and write, as long as this object lives.
// Owns: the registration; shares the memory.
// Threads: immutable.
class RegisteredMemory {
 public:
  virtual ~RegisteredMemory() = default;
  virtual std::byte* data() const = 0;
  virtual size_t bytes() const = 0;
  // Returns the address and the card key of this memory, without a key.
  virtual const RemoteArena& arena() const = 0;
};

// The process's use of UCX: the registrations of its arenas.
// Owns: UCX's context.
// Threads: thread-safe.
// Blocks: registered(), while the kernel pins the pages of new memory.
class RemoteDomain {
 public:
  virtual ~RemoteDomain() = default;

  // Returns the domain of this process; the first call makes it. UCX_TLS in the environment names
  // the transports. Without it only cards count, so a host without a card is refused, instead of
  // computing over TCP in silence.
  // Errors: kBadConfig with the reason: built without UCX, no library, no card.
  static std::shared_ptr<RemoteDomain> open();

  // Registers memory for an access once, and returns that registration again until nobody else
  // holds `owner`. Transports without a card don't enforce the access.
  // Errors: kUnavailable with UCX's reason.
  virtual std::shared_ptr<const RegisteredMemory> registered(std::span<std::byte> memory,
                                                             std::shared_ptr<const void> owner,
                                                             RemoteAccess access) = 0;

  // Returns "UCX 1.13.1, UCX_TLS=tcp", for the log.
  virtual std::string text() const = 0;
  // Returns "1.13.1". A channel connects only ends of one version: UCX aborts a process that reads
  // the address of another one.
  virtual std::string version() const = 0;

  virtual size_t TEST_registrations() const = 0;
};

// The name and the most time of an operation, for its error.
struct RemoteWait {
  std::string what;  // "to put a gradient into ps/1 (localhost:2222)"
  Duration deadline{};
};

// One end of a channel. An end that calls connect() reads and writes the arenas of the other end.
// The other end serves it meanwhile: over transports without a card, that takes its loop's time.
// Nothing of a channel is read or written after either end is destroyed.
// Owns: a worker of UCX, with its connection; shares the memory of operations under way.
// Borrows: `loop` (must outlive this).
// Threads: loop-thread only.
// Blocks: the destructor, for 100 ms at most, until UCX has dropped its operations.
// Errors: of operations, as promises: those of a broken connection (isBroken()), with the name of
// the operation and UCX's reason. After the first one, all operations fail, and none is thrown.
class RemoteChannel {
 public:
  virtual ~RemoteChannel() noexcept(false) = default;

  // Errors: kUnavailable with UCX's reason, or if the loop can't wait for descriptors.
  static std::unique_ptr<RemoteChannel> open(Loop& loop, std::shared_ptr<RemoteDomain> domain);

  // Returns the address for the other end.
  virtual const std::vector<std::byte>& address() const = 0;
  // Connects to the other end, once, which has the same version().
  // Errors: kBadData for an empty or oversized address; kUnavailable with UCX's reason.
  virtual void connect(std::span<const std::byte> address) = 0;

  // After the first operation: returns the transports that UCX has chosen, as UCX's own text for
  // developers has them: "tcp/eth0". Empty: that text has another form.
  virtual std::string transports() const = 0;

  // After connect(): learns an arena of the other end.
  // Errors: kBadData for a card key that is malformed or too large, for an arena without a key, or
  // one that wraps around; kUnavailable with UCX's reason.
  virtual void learn(const RemoteArena& arena) = 0;
  virtual void forget(uint64_t key) = 0;
  virtual bool knows(uint64_t key) const = 0;
  virtual size_t knownCount() const = 0;

  // Reads `bytes` from the beginning of a learned arena into `to`.
  // Errors: kBadData at once, if the arena is unknown or smaller, or `to` is smaller.
  virtual kj::Promise<void> get(RemoteWait wait, std::shared_ptr<const RegisteredMemory> to,
                                uint64_t bytes, uint64_t key) = 0;
  // Writes `bytes` of `from` to the beginning of a learned arena. Resolves when they are there.
  // Errors: likewise.
  virtual kj::Promise<void> put(RemoteWait wait, std::shared_ptr<const RegisteredMemory> from,
                                uint64_t bytes, uint64_t key) = 0;
};

// Returns whether a card moves the values of each of these transports ("rc_mlx5/mlx5_0:1").
bool areCards(std::string_view transports);
// Returns the transports in the text of ucp_ep_print_info().
std::string transportsIn(std::string_view endpoint_info);

// Returns what is wrong with the form of a card key; empty: nothing. UCX reads a card key without
// looking at its end.
std::string cardKeyFault(std::span<const std::byte> card_key);

}  // namespace dtf::net
