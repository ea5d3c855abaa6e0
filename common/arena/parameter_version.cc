#include "common/arena/parameter_version.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/log.h"
#include "common/base/mutex.h"

namespace dtf::arena {

namespace {

// A sender may read whole 8-byte words, and one beyond.
constexpr uint64_t kPaddingBytes = 8;

struct Arena {
  Buffer values;
  uint64_t mark = 0;
};

}  // namespace

struct VersionPool::Core {
  const uint64_t elements;
  Mutex mutex;
  uint32_t free_max DTF_GUARDED_BY(mutex);
  bool closed DTF_GUARDED_BY(mutex) = false;
  bool shares DTF_GUARDED_BY(mutex) = false;
  bool refused DTF_GUARDED_BY(mutex) = false;  // the kernel refused shared memory: don't try again
  uint64_t allocated DTF_GUARDED_BY(mutex) = 0;
  std::vector<Arena> unused DTF_GUARDED_BY(mutex);

  Core(uint64_t elements_in, uint32_t free_max_in) : elements(elements_in), free_max(free_max_in) {
    unused.reserve(free_max);
  }

  // Returns an unused arena, or an empty one when there is none: the caller allocates outside the
  // lock.
  Arena take() {
    MutexLock lock(mutex);
    if (unused.empty()) {
      ++allocated;
      return {};
    }
    // Among arenas without a mark, take the one given back last, which a cache may hold.
    const auto by_mark = [](const Arena& a, const Arena& b) { return a.mark < b.mark; };
    std::swap(*std::max_element(unused.rbegin(), unused.rend(), by_mark), unused.back());
    Arena arena = std::move(unused.back());
    unused.pop_back();
    return arena;
  }

  void giveBack(Arena arena, bool is_retired) {
    MutexLock lock(mutex);
    const bool fits = !shares || arena.values.sharedMemory() != nullptr;
    if (!closed && !is_retired && fits && unused.size() < free_max) {
      unused.push_back(std::move(arena));
    } else {
      --allocated;
    }
  }

  Buffer make() {
    const uint64_t bytes = elements * sizeof(float) + kPaddingBytes;
    {
      MutexLock lock(mutex);
      if (!shares) return Buffer(bytes);
    }
    try {
      return Buffer::shared(bytes);
    } catch (const Error& error) {
      log::warning("event=memory_not_shared error=\"{}\"", error.message());
      MutexLock lock(mutex);
      refused = true;
      shares = false;
    }
    return Buffer(bytes);
  }
};

VersionPool::VersionPool(uint64_t elements, uint32_t free_max)
    : core_(std::make_shared<Core>(elements, free_max)) {}

VersionPool::~VersionPool() {
  std::vector<Arena> unused;
  MutexLock lock(core_->mutex);
  core_->closed = true;
  core_->allocated -= core_->unused.size();
  unused.swap(core_->unused);
}

std::shared_ptr<ParameterVersion> VersionPool::acquire(uint64_t version) {
  Arena arena = core_->take();
  if (arena.values.data() == nullptr) arena.values = core_->make();
  auto* made = new ParameterVersion(std::move(arena.values), core_->elements, version, arena.mark);
  return std::shared_ptr<ParameterVersion>(made, [core = core_](ParameterVersion* gone) {
    core->giveBack({std::move(gone->arena_), gone->mark_}, gone->is_retired_);
    delete gone;
  });
}

void VersionPool::share(uint32_t readers) {
  std::vector<Arena> own;
  MutexLock lock(core_->mutex);
  if (core_->shares || core_->refused) return;
  core_->shares = true;
  core_->free_max += readers;
  core_->allocated -= core_->unused.size();
  own.swap(core_->unused);
  core_->unused.reserve(core_->free_max);
}

std::shared_ptr<const ParameterVersion> VersionPool::take(std::span<const float> values,
                                                          std::shared_ptr<const void> owner,
                                                          uint64_t version) {
  DTF_CHECK(values.size() == core_->elements);
  const bool aligned = reinterpret_cast<uintptr_t>(values.data()) % kBufferAlignment == 0;
  if (owner != nullptr && aligned && !values.empty()) {
    const std::shared_ptr<ParameterVersion> received(
        new ParameterVersion({}, values.size(), version));
    received->received_ = values.data();
    received->owner_ = std::move(owner);
    return received;
  }
  const std::shared_ptr<ParameterVersion> copy = acquire(version);
  if (!values.empty()) std::memcpy(copy->mutableData(), values.data(), values.size_bytes());
  return copy;
}

uint64_t VersionPool::allocated() const {
  MutexLock lock(core_->mutex);
  return core_->allocated;
}

}  // namespace dtf::arena
