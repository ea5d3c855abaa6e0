#pragma once

// How memory gets from one process to another on the same host (base/shared_memory.h): its
// descriptor goes over a Unix socket, once. Who connects to whom, and what the memory is for, two
// processes tell each other elsewhere.

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

// Another process's, with the key that it has there.
struct GivenMemory {
  uint64_t key = 0;
  std::shared_ptr<const MappedMemory> memory;
};

// Proves to a door that somebody was told of it. In no log and no status.
using DoorSecret = std::array<uint64_t, 2>;

// One end.
// Owns: the socket.
// Threads: thread-compatible.
// Blocks: never, but while the kernel maps what was received.
class MemoryChannel {
 public:
  // The end of whoever comes to an open door: it waits for nobody.
  // Errors: kBadData for an address that is no door's; kUnavailable where no such door is open on
  // this host (in this network namespace), or it is crowded.
  static MemoryChannel connect(const std::string& address, const DoorSecret& secret);

  // Memory that the other end may read, from now on and for as long as it likes.
  // Errors: kUnavailable when the other end is gone, or leaves lying too much of what it is given.
  void give(const SharedMemory& memory);

  // What was given first of what has not been received; nullopt: nothing. What was given before an
  // answer was sent is there when the answer is.
  // Errors: kUnavailable when the other end is gone, or this process has no descriptor left;
  // kBadData when it gives what is no shared memory, or is larger than `bytes_max`:
  // reading it takes memory of this host, whoever made it.
  std::optional<GivenMemory> receive(size_t bytes_max);

 private:
  friend class MemoryDoor;
  explicit MemoryChannel(Fd socket) : socket_(std::move(socket)) {}

  Fd socket_;
};

// Where one other process connects.
// Owns: a listening Unix socket of a random name that is no file (unix(7), abstract).
// Threads: thread-compatible.
// Blocks: never.
class MemoryDoor {
 public:
  // Errors: kUnavailable with what the kernel refuses.
  MemoryDoor();

  const std::string& address() const { return address_; }
  const DoorSecret& secret() const { return secret_; }

  // The end of whoever has connected with the secret; nullopt: nobody has.
  // Errors: kUnavailable with what the kernel refuses.
  std::optional<MemoryChannel> take();

 private:
  Fd socket_;
  std::string address_;
  DoorSecret secret_{};
};

}  // namespace dtf::net
