#pragma once

// Passes memory from one process to another on the same host (base/shared_memory.h): its descriptor
// is sent once over a Unix socket. The two processes agree elsewhere on who connects, and on the
// memory's purpose.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/base/file.h"
#include "common/base/shared_memory.h"

namespace dtf::net {

// Memory of another process, with its key there.
struct GivenMemory {
  uint64_t key = 0;
  std::shared_ptr<const MappedMemory> memory;
};

// Proves to a door that the client was told its address. Never in a log or status.
using DoorSecret = std::array<uint64_t, 2>;

// One end.
// Owns: the socket.
// Threads: thread-compatible.
// Blocks: never, except while the kernel maps received memory.
class MemoryChannel {
 public:
  // Connects to a listening door; never blocks.
  // Errors: kBadData for an address that is no door's; kUnavailable if no such door is open on this
  // host (in this network namespace), or if it is crowded.
  static MemoryChannel connect(const std::string& address, const DoorSecret& secret);

  // Gives memory to the other end, which may read it for as long as it likes.
  // Errors: kUnavailable if the other end is gone, or has too many unread messages.
  void give(const SharedMemory& memory);

  // Receives the oldest pending memory; nullopt if there is none. Memory given before a reply was
  // sent is available when the reply is.
  // Errors: kUnavailable if the other end is gone, or this process has no descriptor left; kBadData
  // if it is no shared memory, or larger than `bytes_max`: reading it takes memory of this host,
  // even if the other process allocated it.
  std::optional<GivenMemory> receive(size_t bytes_max);

 private:
  friend class MemoryDoor;
  explicit MemoryChannel(Fd socket) : socket_(std::move(socket)) {}

  Fd socket_;
};

// Listens for one other process.
// Owns: a listening Unix socket with a random name that is no file (unix(7), abstract).
// Threads: thread-compatible.
// Blocks: never.
class MemoryDoor {
 public:
  // Errors: kUnavailable with the kernel's reason.
  MemoryDoor();

  const std::string& address() const { return address_; }
  const DoorSecret& secret() const { return secret_; }

  // Returns the connection that presented the secret; nullopt if there is none.
  // Errors: kUnavailable with the kernel's reason.
  std::optional<MemoryChannel> take();

 private:
  Fd socket_;
  std::string address_;
  DoorSecret secret_{};
};

}  // namespace dtf::net
