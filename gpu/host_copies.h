#pragma once

// Copies between the host's memory, which isn't pinned, and the device's. CUDA takes such memory
// through a buffer of its own with one thread, at a few GB/s; here several threads take it through
// pinned buffers, each with a stream of its own, so that the bus has work while they copy. Small
// ones wait side by side in one buffer.

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

// Memory of the host that the device reads and writes by itself. Owns it. Errors: PluginError.
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
// Borrows: the device's stream; until wait() has returned, the memory that is copied.
// Threads: one at a time, the device's.
// Blocks: wait(), until all is copied; awaitBeside(), until that is; beforeProgram(), until what
// goes to the device has been read; toDevice() and toHost() do so where they would overtake copies
// of the other direction, or to the same place.
// Errors: PluginError from all but forget(), of whatever copy failed first.
class HostCopies {
 public:
  // `stream`: that of the device's programs.
  HostCopies(int device, Stream stream);
  ~HostCopies();
  HostCopies(const HostCopies&) = delete;
  HostCopies& operator=(const HostCopies&) = delete;

  // After what `stream` has been given and what has been copied so far. Until wait() returns,
  // `source` must stay, and `target` isn't written.
  void toDevice(std::byte* target, const std::byte* source, size_t bytes);
  void toHost(std::byte* target, const std::byte* source, size_t bytes);
  // To the device: not after what `stream` has been given, which doesn't use `target`. To the host:
  // after that, but what it is given later, which doesn't write `source`, doesn't wait.
  void toDeviceBeside(std::byte* target, const std::byte* source, size_t bytes);
  void toHostBeside(std::byte* target, const std::byte* source, size_t bytes);
  // For the first `copies` of toHostBeside() since wait().
  void awaitBeside(size_t copies);
  // What `stream` is given from now on comes after all copies to the device.
  void beforeProgram();
  // For all copies. `stream` must have been waited for.
  void wait();
  // After an error: what is on its way to the host may not arrive, and nobody writes there from now
  // on.
  void forget();

 private:
  static constexpr size_t kNoNumber = SIZE_MAX;
  struct Copy {
    std::byte* target;
    const std::byte* source;
    size_t bytes;
    bool to_device;
    const Event* after = nullptr;  // a place of `stream`; null: at once
    size_t beside = kNoNumber;     // which of toHostBeside() it is of, since wait()
  };
  struct Copier;
  // Copies that aren't done, of one direction, those that are under way among them.
  struct Left {
    size_t to_device = 0, to_host = 0;
  };

  enum class Pending : uint8_t {
    kNone,
    kToDevice,
    kToHost
  };  // what the copiers have that others wait for

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
  std::unique_ptr<PinnedMemory> small_;  // copies that wait for wait()
  size_t small_used_ = 0;
  std::vector<Copy> small_to_host_;     // from small_
  Event reached_{Event::Use::kOrders};  // of `stream`: what copiers wait for
  bool is_reached_marked_ = false;      // since the copiers were last waited for
  // The same for copies beside it, one for each place of `stream` from which there are some, until
  // wait().
  std::deque<Event> places_;
  size_t places_used_ = 0;
  bool is_at_new_place_ = true;  // since the last of them a program was given to `stream`
  bool has_beside_ = false;      // copies to the host, beside `stream`
  Pending pending_ = Pending::kNone;
  std::vector<std::pair<std::byte*, size_t>> targets_;  // of what is on its way to the device

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Copy> queue_;
  Left left_;
  std::vector<size_t> chunks_left_;  // of each copy to the host beside `stream` since wait()
  bool ends_ = false;
  std::exception_ptr failure_;
  std::vector<std::unique_ptr<Copier>> copiers_;
};

}  // namespace dtf::gpu
