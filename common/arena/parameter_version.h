#pragma once

// The parameters of one shard at one version: an arena that never changes once it is published. So
// a reply can be sent from it, without a copy, while the next version is computed into another
// arena.

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "common/tensor/buffer.h"

namespace dtf::arena {

// Owns: an arena of `elements()` float32, aligned to 64 bytes, followed by at least 8 readable zero
// bytes; or shares a received one, in place.
// Threads: immutable after publication (as shared_ptr<const ParameterVersion>); before that,
// thread-compatible.
class ParameterVersion {
 public:
  ParameterVersion(const ParameterVersion&) = delete;
  ParameterVersion& operator=(const ParameterVersion&) = delete;

  const float* data() const { return owner_ ? received_ : arena_.as<float>(); }
  uint64_t elements() const { return elements_; }
  uint64_t version() const { return version_; }        // updates in it, since the initial values
  float* mutableData() { return arena_.as<float>(); }  // nullptr when it was received

  // The memory that other processes can read; nullptr: none.
  const std::shared_ptr<const SharedMemory>& sharedMemory() const { return arena_.sharedMemory(); }
  // Keeps the arena from being filled again: a reader may use it for longer than this version is
  // kept. Any thread.
  void retire() const { is_retired_ = true; }

  // Marks the contents of the arena, until it is filled anew; 0: not marked.
  void mark(uint64_t mark) { mark_ = mark; }
  // Returns the mark that the arena had when it was acquired; its contents stay until it is
  // written.
  uint64_t markBefore() const { return mark_before_; }

 private:
  friend class VersionPool;
  ParameterVersion(Buffer arena, uint64_t elements, uint64_t version, uint64_t mark_before = 0)
      : arena_(std::move(arena)),
        elements_(elements),
        version_(version),
        mark_before_(mark_before) {}

  Buffer arena_;
  uint64_t elements_;
  uint64_t version_;
  uint64_t mark_before_;
  uint64_t mark_ = 0;
  mutable std::atomic<bool> is_retired_ = false;
  const float* received_ = nullptr;
  std::shared_ptr<const void> owner_;  // of received_
};

// Returns the most shared memory that a parameter or gradient arena of so many elements takes.
constexpr size_t sharedArenaBytesMax(uint64_t elements) {
  return elements * sizeof(float) +
         2 * kBufferAlignment;  // the readable bytes behind it, and padding
}

// A pool of arenas, to which an arena returns when the last reader of its version lets go, on any
// thread. At most `free_max` unused arenas are kept; the number in use is bounded by their readers
// (one reply per worker).
// Owns: the unused arenas; arenas still being read outlive the pool.
// Threads: thread-safe.
// Blocks: never for long.
class VersionPool {
 public:
  VersionPool(uint64_t elements, uint32_t free_max);
  ~VersionPool();

  // Returns an arena to fill, then to publish by converting to shared_ptr<const ParameterVersion>.
  // Its contents are undefined where `elements` reach, zero beyond. A recycled one is the unused
  // arena with the highest mark, and still holds its old values: see markBefore().
  std::shared_ptr<ParameterVersion> acquire(uint64_t version);

  // Makes arenas in shared memory from now on, and keeps one more for each of `readers`: each may
  // read another version, and many let go at once. Once the kernel refuses one, arenas are this
  // process's alone for good, with a warning.
  void share(uint32_t readers);

  // Returns a version of `values`: in place, with `owner` kept, or a copy if they are not aligned
  // for a version, or `owner` is null. They have the size of this pool's arenas (DTF_CHECK).
  std::shared_ptr<const ParameterVersion> take(std::span<const float> values,
                                               std::shared_ptr<const void> owner, uint64_t version);

  uint64_t allocated() const;  // arenas in existence, read or unused: for tests and status

 private:
  struct Core;
  std::shared_ptr<Core>
      core_;  // shared with the deleters of the versions, which may outlive the pool
};

}  // namespace dtf::arena
