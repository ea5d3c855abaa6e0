#include "gpu/host_copies.h"

#include <pthread.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

namespace dtf::gpu {
namespace {

constexpr size_t kCopiers = 4, kChunkBytes = size_t{1} << 20, kSmallBytes = size_t{64} << 10;
constexpr size_t kSmallMemoryBytes = size_t{8} << 20;

}  // namespace

PinnedMemory::PinnedMemory(size_t bytes) {
  check(cudaMallocHost(&memory_, bytes), "allocating pinned memory");
}

// Its two buffers alternate: the host copies one while the device copies the other.
struct HostCopies::Copier {
  Copier() : buffers{PinnedMemory(kChunkBytes), PinnedMemory(kChunkBytes)} {
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
  }
  ~Copier() {
    if (thread.joinable()) thread.join();
    (void)cudaStreamDestroy(stream);
  }
  Copier(const Copier&) = delete;
  Copier& operator=(const Copier&) = delete;

  std::array<PinnedMemory, 2> buffers;
  std::array<Event, 2> free{Event(Event::Use::kOrders),
                            Event(Event::Use::kOrders)};  // the device has read it
  size_t next = 0;
  Stream stream = nullptr;
  Event done{Event::Use::kOrders};  // all that it queued on its stream
  std::thread thread;
};

HostCopies::HostCopies(int device, Stream stream)
    : device_(device), stream_(stream), small_(std::make_unique<PinnedMemory>(kSmallMemoryBytes)) {
  for (size_t i = 0; i < kCopiers; ++i) copiers_.push_back(std::make_unique<Copier>());
  try {
    for (const std::unique_ptr<Copier>& copier : copiers_) {
      copier->thread = std::thread([this, one = copier.get()] { work(*one); });
      (void)pthread_setname_np(copier->thread.native_handle(), "dtf-gpu-copy");
    }
  } catch (const std::system_error& error) {
    end();
    throw PluginError(
        DTF_PLUGIN_UNAVAILABLE,
        std::string("The host gives no more threads, for copies to a GPU: ") + error.what() + ".");
  }
}

HostCopies::~HostCopies() {
  end();
}

void HostCopies::end() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  copiers_.clear();
}

void HostCopies::toDevice(std::byte* target, const std::byte* source, size_t bytes) {
  if (pending_ == Pending::kToHost) waitForCopiers();
  if (pending_ == Pending::kToDevice && overlapsPending(target, bytes)) beforeProgram();
  if (bytes > kSmallBytes || pending_ == Pending::kToDevice) targets_.push_back({target, bytes});
  if (bytes > kSmallBytes) return add({target, source, bytes, true});
  if (small_used_ + bytes <= kSmallMemoryBytes) {
    std::byte* const kept = small_->get() + small_used_;
    small_used_ += (bytes + 63) / 64 * 64;
    std::memcpy(kept, source, bytes);
    source = kept;
  }
  check(cudaMemcpyAsync(target, source, bytes, cudaMemcpyHostToDevice, stream_),
        "copying to the device");
}

void HostCopies::toHost(std::byte* target, const std::byte* source, size_t bytes) {
  if (pending_ == Pending::kToDevice) beforeProgram();
  if (bytes > kSmallBytes) return add({target, source, bytes, false});
  std::byte* to = target;
  if (small_used_ + bytes <= kSmallMemoryBytes) {
    to = small_->get() + small_used_;
    small_used_ += (bytes + 63) / 64 * 64;
    small_to_host_.push_back({target, to, bytes, false});
  }
  check(cudaMemcpyAsync(to, source, bytes, cudaMemcpyDeviceToHost, stream_), "copying to the host");
}

bool HostCopies::overlapsPending(const std::byte* target, size_t bytes) const {
  return std::any_of(targets_.begin(), targets_.end(),
                     [&](const std::pair<std::byte*, size_t>& other) {
                       return target < other.first + other.second && other.first < target + bytes;
                     });
}

void HostCopies::toDeviceBeside(std::byte* target, const std::byte* source, size_t bytes) {
  if (bytes <= kSmallBytes) return toDevice(target, source, bytes);
  if (pending_ == Pending::kToHost) waitForCopiers();
  pending_ = Pending::kToDevice;
  targets_.push_back({target, bytes});
  addChunks({target, source, bytes, true});
}

void HostCopies::toHostBeside(std::byte* target, const std::byte* source, size_t bytes) {
  if (std::exchange(is_at_new_place_, false)) {
    if (places_used_ == places_.size()) places_.emplace_back(Event::Use::kOrders);
    places_[places_used_++].record(stream_);
  }
  has_beside_ = true;
  size_t number = 0;
  {
    const std::lock_guard lock(mutex_);
    number = chunks_left_.size();
    chunks_left_.push_back((bytes + kChunkBytes - 1) / kChunkBytes);
  }
  addChunks({target, source, bytes, false, &places_[places_used_ - 1], number});
}

// A failed copy is reported here, and by wait() again: later copies are invalid.
void HostCopies::awaitBeside(size_t copies) {
  std::unique_lock lock(mutex_);
  if (copies > chunks_left_.size())
    throw PluginError(DTF_PLUGIN_INTERNAL, "More copies are awaited than were started.");
  const auto end = chunks_left_.begin() + static_cast<ptrdiff_t>(copies);
  changed_.wait(lock, [&] {
    return failure_ ||
           std::all_of(chunks_left_.begin(), end, [](size_t left) { return left == 0; });
  });
  if (failure_) std::rethrow_exception(failure_);
}

void HostCopies::add(const Copy& copy) {
  if (!std::exchange(is_reached_marked_, true)) reached_.record(stream_);
  pending_ = copy.to_device ? Pending::kToDevice : Pending::kToHost;
  addChunks({copy.target, copy.source, copy.bytes, copy.to_device, &reached_});
}

void HostCopies::addChunks(const Copy& copy) {
  {
    const std::lock_guard lock(mutex_);
    for (size_t begin = 0; begin < copy.bytes; begin += kChunkBytes) {
      queue_.push_back({copy.target + begin, copy.source + begin,
                        std::min(kChunkBytes, copy.bytes - begin), copy.to_device, copy.after,
                        copy.beside});
      ++(copy.to_device ? left_.to_device : left_.to_host);
    }
  }
  changed_.notify_all();
}

void HostCopies::work(Copier& copier) {
  (void)cudaSetDevice(device_);
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return ends_ || !queue_.empty(); });
    if (ends_) return;
    const Copy chunk = queue_.front();
    queue_.pop_front();
    lock.unlock();
    std::exception_ptr failure;
    try {
      copy(copier, chunk);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (failure && !failure_) failure_ = failure;
    size_t& left = chunk.to_device ? left_.to_device : left_.to_host;
    const bool is_copied = chunk.beside != kNoNumber && --chunks_left_[chunk.beside] == 0;
    if (--left == 0 || is_copied || failure) changed_.notify_all();
  }
}

void HostCopies::copy(Copier& copier, const Copy& chunk) {
  if (chunk.after != nullptr) chunk.after->holdBack(copier.stream);
  std::byte* const buffer = copier.buffers[copier.next].get();
  Event& free = copier.free[copier.next];
  copier.next = 1 - copier.next;
  free.wait();
  if (chunk.to_device) {
    std::memcpy(buffer, chunk.source, chunk.bytes);
    check(cudaMemcpyAsync(chunk.target, buffer, chunk.bytes, cudaMemcpyHostToDevice, copier.stream),
          "copying to the device");
    free.record(copier.stream);
    copier.done.record(copier.stream);
  } else {
    check(cudaMemcpyAsync(buffer, chunk.source, chunk.bytes, cudaMemcpyDeviceToHost, copier.stream),
          "copying to the host");
    free.record(copier.stream);
    free.wait();
    std::memcpy(chunk.target, buffer, chunk.bytes);
  }
}

void HostCopies::waitForCopiers(bool to_device_alone) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock,
                [&] { return left_.to_device == 0 && (to_device_alone || left_.to_host == 0); });
  pending_ = Pending::kNone;
  is_reached_marked_ = false;
  targets_.clear();
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void HostCopies::beforeProgram() {
  is_at_new_place_ = true;
  if (pending_ == Pending::kNone) return;
  waitForCopiers(pending_ == Pending::kToDevice);
  for (const std::unique_ptr<Copier>& copier : copiers_) copier->done.holdBack(stream_);
}

// Called before a wait for all copies. Returns whether there are some beside the stream.
bool HostCopies::forgetPlaces() {
  places_used_ = 0;
  is_at_new_place_ = true;
  return std::exchange(has_beside_, false);
}

// Called after all copies are done.
void HostCopies::forgetNumbers() {
  const std::lock_guard lock(mutex_);
  chunks_left_.clear();
}

void HostCopies::wait() {
  const std::vector<Copy> small = std::exchange(small_to_host_, {});
  small_used_ = 0;
  const bool to_device = pending_ == Pending::kToDevice;
  try {
    if (forgetPlaces() || pending_ != Pending::kNone) waitForCopiers();
  } catch (const PluginError&) {
    forgetNumbers();
    throw;
  }
  forgetNumbers();
  if (to_device)
    for (const std::unique_ptr<Copier>& copier : copiers_) copier->done.wait();
  for (const Copy& copy : small) std::memcpy(copy.target, copy.source, copy.bytes);
}

void HostCopies::forget() {
  small_to_host_.clear();
  small_used_ = 0;
  try {
    if (forgetPlaces() || pending_ != Pending::kNone) waitForCopiers();
  } catch (const PluginError&) {
    // The caller already has an error to report.
  }
  forgetNumbers();
}

}  // namespace dtf::gpu
