#pragma once

// The parameters of one shard at one version: an arena that never changes once it is published, so
// that a reply can be sent from it, without a copy, while the next version is computed into another
// arena.

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "common/tensor/buffer.h"

namespace dtf::ps {

// Owns: an arena of `elements()` float32, aligned to 64 bytes, followed by at least 8 readable zero
// bytes; or shares one that was received, as it lies there.
// Threads: immutable after publication (as shared_ptr<const Snapshot>); before that,
// thread-compatible.
class Snapshot {
 public:
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  const float* data() const { return owner_ ? received_ : arena_.as<float>(); }
  uint64_t elements() const { return elements_; }
  uint64_t version() const { return version_; }        // updates in it, since the initial values
  float* mutableData() { return arena_.as<float>(); }  // nullptr when it was received

  // Where other processes can be given it to read; nullptr: nowhere.
  const std::shared_ptr<const SharedMemory>& sharedMemory() const { return arena_.sharedMemory(); }
  // Somebody may read the arena for longer than this snapshot is kept: it is not filled again. Any
  // thread.
  void retire() const { is_retired_ = true; }

  // Whoever fills an arena may mark what it holds then, until it is filled anew; 0: not marked.
  void mark(uint64_t mark) { mark_ = mark; }
  // Of what the arena held, and holds until it is written, when this was acquired.
  uint64_t markBefore() const { return mark_before_; }

 private:
  friend class SnapshotPool;
  Snapshot(Buffer arena, uint64_t elements, uint64_t version, uint64_t mark_before = 0)
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

// Of the shared memory that a parameter or gradient arena of so many elements lies in.
constexpr size_t sharedArenaBytesMax(uint64_t elements) {
  return elements * sizeof(float) +
         2 * kBufferAlignment;  // what is readable behind it, and padding
}

// Where arenas come from and return to when the last reader of a snapshot lets go, on whichever
// thread. At most `free_max` unused arenas are kept; those in use are bounded by their readers (one
// reply per worker).
// Owns: the unused arenas; arenas still being read outlive the pool.
// Threads: thread-safe.
// Blocks: never for long.
class SnapshotPool {
 public:
  SnapshotPool(uint64_t elements, uint32_t free_max);
  ~SnapshotPool();

  // An arena to fill, then to publish by converting to shared_ptr<const Snapshot>. Its contents are
  // undefined where `elements` reach, zero beyond; a recycled arena still holds the old values that
  // markBefore() tells of, and of those the one with the highest mark is given.
  std::shared_ptr<Snapshot> acquire(uint64_t version);

  // Arenas are shared memory from now on, of which one is kept for each of so many readers, too:
  // where they read, each has another version, and many let go at once. Until the kernel refuses
  // one: then they are this process's alone for good, with a warning.
  void share(uint32_t readers);

  // Those values, kept where they are while `owner` lives; copied where their place is none for a
  // snapshot, or `owner` is null. As many as this pool's arenas have (DTF_CHECK).
  std::shared_ptr<const Snapshot> take(std::span<const float> values,
                                       std::shared_ptr<const void> owner, uint64_t version);

  uint64_t allocated() const;  // arenas in existence, read or unused: for tests and status

 private:
  struct Core;
  std::shared_ptr<Core>
      core_;  // shared with the deleters of the snapshots, which may outlive the pool
};

}  // namespace dtf::ps
