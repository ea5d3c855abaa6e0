#pragma once

// Memory of a fixed size that processes of one user on one host write together, found by the name
// of a file in /dev/shm. Each process has a seat, and the others can see whether it still runs.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "common/base/clock.h"
#include "common/base/file.h"

namespace dtf {

// A seat is a lock on a byte of the file. The kernel releases it when its process ends, however it
// ends. The memory is zeroed when a process joins it while all seats are free, and removed when the
// last one leaves it. A file that is left by killed processes so has no effect on later ones.
//
// Owns: the descriptor, the mapping and the seat.
// Threads: thread-safe; as for any memory, data() needs an agreement between its users.
// Blocks: the constructor, for `patience` at most; awaitRing(). The destructor, while another
// process joins or leaves.
// Errors: kDeadline if another process keeps the seat, or the file locked. kPermission if the file
// or its folder could be written by another user. kBadConfig if the others have joined memory of
// another size or identity, and stay. kUnavailable with the kernel's reason, such as too little
// memory.
class JoinedMemory {
 public:
  struct Options {
    std::filesystem::path file;  // its folder is made, with mode 0700, and removed when it is empty
    size_t bytes = 0;            // from 1
    uint32_t seats = 0;          // of all processes
    uint32_t seat = 0;
    Duration patience{};
    uint64_t identity = 0;  // of the job: a process joins only others with the same
    // Called every few milliseconds while the constructor waits, with the reason. An error that it
    // throws ends the wait.
    std::function<void(const std::string& reason, Duration waited)> on_waiting{};
  };
  explicit JoinedMemory(const Options& options);
  ~JoinedMemory();
  JoinedMemory(const JoinedMemory&) = delete;
  JoinedMemory& operator=(const JoinedMemory&) = delete;

  // Returns the first of `bytes` bytes, aligned to a page. All pages are allocated.
  std::byte* data() const;

  // Returns whether a process that runs has `seat`.
  bool isTaken(uint32_t seat) const;

  // A bell that all processes share. ring() wakes those in awaitRing(). To miss no ring, read
  // rings() before the state that is waited for, and pass the number to awaitRing().
  uint32_t rings() const;
  void ring();
  // Returns when the number is no longer `seen`, or after `at_most`, or earlier.
  void awaitRing(uint32_t seen, Duration at_most) const;

 private:
  enum class Attempt : uint8_t { kJoined, kRemoved, kLocked, kOtherJob, kSeatTaken };

  Fd openFile() const;
  Attempt tryJoin();
  Attempt joinAtDoor();
  std::string reasonOf(Attempt attempt) const;
  void map();
  void prepare();
  bool isAnyTaken(uint32_t first, uint32_t count) const;

  const Options options_;
  const size_t bytes_;  // with the page of the bell
  Fd fd_;
  std::byte* mapped_ = nullptr;
};

}  // namespace dtf
