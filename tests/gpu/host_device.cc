// The plug-in's device in the host's memory, in place of device.cc, which needs CUDA. Tests of the
// kernels' arithmetic and of the boundary run it without a GPU; nothing installs it.

#include <cstdlib>
#include <cstring>

#include "gpu/backend.h"
#include "gpu/device.h"
#include "gpu/error.h"
#include "tests/gpu/host_libraries.h"

namespace dtf::gpu {

std::string backendText() {
  return "the host, for tests";
}

// DTF_TEST_HOST_DEVICES sets the number of devices; the default is one.
int Device::count(std::string& why) {
  const char* const said = std::getenv("DTF_TEST_HOST_DEVICES");
  const int count = said == nullptr ? 1 : std::atoi(said);
  if (count == 0) why = "the test wants none";
  return count;
}

Device::Device(int index)
    : index_(index),
      description_("host " + std::to_string(index)),
      bad_data_(new BadData),
      libraries_(std::make_unique<Libraries>()) {}

Device::~Device() {
  delete bad_data_;
  for (std::byte* const memory : workspaces_) deallocate(memory);
}

void Device::makeCurrent() const {}

std::byte* Device::allocate(size_t bytes) {
  constexpr size_t kAlignment = 256;
  const size_t padded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  void* const memory = std::aligned_alloc(kAlignment, padded);
  if (memory == nullptr)
    throw PluginError(DTF_PLUGIN_UNAVAILABLE,
                      "The device has no " + std::to_string(padded) + " bytes of memory.");
  std::memset(memory, 0, padded);
  return static_cast<std::byte*>(memory);
}

void Device::deallocate(std::byte* memory) noexcept {
  std::free(memory);
}

void Device::copyToDevice(std::byte* target, const std::byte* source, size_t bytes) {
  std::memcpy(target, source, bytes);
}

void Device::copyToHost(std::byte* target, const std::byte* source, size_t bytes) {
  std::memcpy(target, source, bytes);
}

void Device::copyToDeviceBeside(std::byte* target, const std::byte* source, size_t bytes) {
  if (libraries_->used.contains(target))
    throw PluginError(DTF_PLUGIN_INTERNAL, "A copy beside programs writes what one of them uses.");
  std::memcpy(target, source, bytes);
}

void Device::copyToHostBeside(std::byte* target, const std::byte* source, size_t bytes) {
  std::memset(target, 0xff, bytes);  // no number
  libraries_->late.push_back({target, source, bytes});
}

// Makes no copy beyond `copies`: a copy that nobody has awaited is as late as possible.
void Device::awaitHost(size_t copies) {
  if (copies > libraries_->late.size())
    throw PluginError(DTF_PLUGIN_INTERNAL, "More copies are awaited than were started.");
  for (; libraries_->late_made < copies; ++libraries_->late_made) {
    const Libraries::Copy& copy = libraries_->late[libraries_->late_made];
    std::memcpy(copy.target, copy.source, copy.bytes);
  }
}

void Device::copyFromPeer(std::byte* target, const Device&, const std::byte* source, size_t bytes) {
  std::memcpy(target, source, bytes);
}

void Device::synchronise() {
  awaitHost(libraries_->late.size());
  libraries_->late.clear();
  libraries_->late_made = 0;
  libraries_->used.clear();
  throwIfBadData();
}

void Device::afterPreparing() {}

void Device::beforeProgram() {}

void Device::fetchReport() {}  // it is in the host's memory

std::byte* Device::workspace(size_t bytes) {
  if (bytes > workspace_bytes_) {
    workspaces_.push_back(allocate(bytes));
    workspace_bytes_ = bytes;
  }
  return workspaces_.empty() ? nullptr : workspaces_.back();
}

void Device::throwIfBadData() {
  if (bad_data_->raised == 0) return;
  const BadData raised = *bad_data_;
  *bad_data_ = {};
  throw PluginError(
      DTF_PLUGIN_BAD_DATA,
      badDataMessage(sources_.at(static_cast<size_t>(raised.source)), raised.index, raised.value));
}

}  // namespace dtf::gpu
