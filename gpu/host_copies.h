#pragma once

// Copies between pageable host memory and the device. CUDA copies such memory through a buffer of
// its own with one thread, at a few GB/s. Here several threads copy it through pinned buffers, each
// with its own stream, so that the bus stays busy. Small copies are collected in one buffer.

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "gpu/event.h"

namespace dtf::gpu {

// Host memory that the device accesses directly. Owns it. Errors: PluginError.
class PinnedMemory {
 public:
  explicit PinnedMemory(size_t bytes);
  ~PinnedMemory() { (void)cudaFreeHost(memory_); }
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  std::byte* get() const { return static_cast<std::byte*>(memory_); }

 private:
  void* memory_ = nullptr;
};

// Owns: its threads, their streams and buffers.
// Borrows: the device's stream; until wait() has returned, the copied memory.
// Threads: one at a time, the device's.
// Blocks: wait(), until all is copied; awaitBeside(), until those copies are; beforeProgram(),
// until copies to the device have been read; toDevice() and toHost(), if they would overtake copies
// of the other direction, or to the same place.
// Errors: PluginError from all but forget(), for the first copy that failed.
class HostCopies {
 public:
  // `stream`: of the device's programs.
  HostCopies(int device, Stream stream);
  ~HostCopies();
  HostCopies(const HostCopies&) = delete;
  HostCopies& operator=(const HostCopies&) = delete;

  // Copies after earlier work of `stream` and earlier copies. Until wait() returns, `source` must
  // not change, and `target` is not valid.
  void toDevice(std::byte* target, const std::byte* source, size_t bytes);
  void toHost(std::byte* target, const std::byte* source, size_t bytes);
  // To the device: independent of earlier work of `stream`, which must not use `target`. To the
  // host: after that work; later work, which must not write `source`, doesn't wait.
  void toDeviceBeside(std::byte* target, const std::byte* source, size_t bytes);
  void toHostBeside(std::byte* target, const std::byte* source, size_t bytes);
  // Waits for the first `copies` calls of toHostBeside() since wait().
  void awaitBeside(size_t copies);
  // Makes later work of `stream` wait for all copies to the device.
  void beforeProgram();
  // Waits for all copies. `stream` must be idle.
  void wait();
  // After an error: copies to the host may be incomplete, and no more are written from now on.
  void forget();

 private:
  static constexpr size_t kNoNumber = SIZE_MAX;
  struct Copy {
    std::byte* target;
    const std::byte* source;
    size_t bytes;
    bool to_device;
    const Event* after = nullptr;  // a place of `stream`; null: at once
    size_t beside = kNoNumber;     // the index of its toHostBeside() since wait()
  };
  struct Copier;
  // Unfinished copies by direction, including running ones.
  struct Left {
    size_t to_device = 0, to_host = 0;
  };

  enum class Pending : uint8_t {
    kNone,
    kToDevice,
    kToHost
  };  // the copiers' direction that others wait for

  void add(const Copy& copy);
  void addChunks(const Copy& copy);
  void work(Copier& copier);
  void copy(Copier& copier, const Copy& chunk);
  void waitForCopiers(bool to_device_alone = false);
  bool forgetPlaces();
  void forgetNumbers();
  void end();
  bool overlapsPending(const std::byte* target, size_t bytes) const;

  const int device_;
  const Stream stream_;
  std::unique_ptr<PinnedMemory> small_;  // copies for wait()
  size_t small_used_ = 0;
  std::vector<Copy> small_to_host_;     // from small_
  Event reached_{Event::Use::kOrders};  // of `stream`: the copiers wait for it
  bool is_reached_marked_ = false;      // since the last wait for the copiers
  // The same for copies beside the stream: one event for each place of `stream` with such copies,
  // until wait().
  std::deque<Event> places_;
  size_t places_used_ = 0;
  bool is_at_new_place_ = true;  // a program was queued on `stream` since the last place
  bool has_beside_ = false;      // there are copies to the host beside `stream`
  Pending pending_ = Pending::kNone;
  // targets of copies in transit to the device
  std::vector<std::pair<std::byte*, size_t>> targets_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Copy> queue_;
  Left left_;
  std::vector<size_t> chunks_left_;  // by copy to the host beside `stream` since wait()
  bool ends_ = false;
  std::exception_ptr failure_;
  std::vector<std::unique_ptr<Copier>> copiers_;
};

}  // namespace dtf::gpu
