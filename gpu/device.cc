#include "gpu/device.h"

#include <algorithm>
#include <cstdio>

#include "gpu/backend.h"
#include "gpu/libraries.h"
#include "gpu/transpose.h"

namespace dtf::gpu {
namespace {

std::string versionText(int version, int major_unit, int minor_unit) {
  return std::to_string(version / major_unit) + "." +
         std::to_string(version % major_unit / minor_unit);
}

std::string describe(const cudaDeviceProp& properties) {
  int driver = 0;
  check(cudaDriverGetVersion(&driver), "asking for the driver's version");
  char memory[32];
  std::snprintf(memory, sizeof memory, "%.1f GiB",
                static_cast<double>(properties.totalGlobalMem) / (1 << 30));
  return std::string(properties.name) + ", " + memory + ", compute capability " +
         std::to_string(properties.major) + "." + std::to_string(properties.minor) + ", driver " +
         versionText(driver, 1000, 10);
}

}  // namespace

std::string backendText() {
  return "CUDA " + versionText(CUDART_VERSION, 1000, 10) + ", cuDNN " +
         versionText(static_cast<int>(cudnnGetVersion()), 10000, 100) + ", cuBLASLt " +
         versionText(static_cast<int>(cublasLtGetVersion()), 10000, 100);
}

int Device::count(std::string& why) {
  int devices = 0;
  const cudaError_t result = cudaGetDeviceCount(&devices);
  if (result == cudaSuccess) return devices;
  (void)cudaGetLastError();
  int driver = 0;
  if (cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0) {
    why =
        "CUDA finds no NVIDIA driver: libcuda.so.1 is missing or none of its devices is open to "
        "this process";
  } else if (result == cudaErrorInsufficientDriver) {
    why = "the NVIDIA driver is for CUDA " + versionText(driver, 1000, 10) + ", CUDA " +
          versionText(CUDART_VERSION, 1000, 10) + " needs a newer one";
  } else {
    why = std::string(cudaGetErrorString(result)) + " (" + cudaGetErrorName(result) + ")";
  }
  return 0;
}

Device::Device(int index) : index_(index), libraries_(std::make_unique<Libraries>()) {
  makeCurrent();
  cudaDeviceProp properties = {};
  check(cudaGetDeviceProperties(&properties, index), "asking for a GPU's properties");
  description_ = describe(properties);
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
  bad_data_ = reinterpret_cast<BadData*>(allocate(sizeof(BadData)));
  void* reported = nullptr;
  check(cudaMallocHost(&reported, sizeof(BadData)), "allocating pinned memory");
  reported_ = static_cast<BadData*>(reported);
  *reported_ = {};
  libraries_->copies = std::make_unique<HostCopies>(index, stream_);
  libraries_->kept =
      std::make_unique<PlanCache>(planCacheFolder(), description_ + ", " + backendText());
  check(cublasLtCreate(&libraries_->blas), "starting it");
  check(cudnnCreate(&libraries_->dnn), "starting it");
  check(cudnnSetStream(libraries_->dnn, stream_), "setting its stream");
  // Runs one kernel on zeroed memory: a GPU without compiled code for it fails here.
  const auto floats = reinterpret_cast<float*>(bad_data_);
  transposeMatrix(*this, floats, floats, 1, 1);
  launched_ = 0;
}

// Ignores errors: nothing could handle them.
Device::~Device() {
  (void)cudaSetDevice(index_);
  if (stream_ != nullptr) (void)cudaStreamSynchronize(stream_);
  libraries_.reset();
  for (std::byte* const memory : workspaces_) deallocate(memory);
  if (bad_data_ != nullptr) deallocate(reinterpret_cast<std::byte*>(bad_data_));
  if (reported_ != nullptr) (void)cudaFreeHost(reported_);
  if (stream_ != nullptr) (void)cudaStreamDestroy(stream_);
}

void Device::makeCurrent() const {
  check(cudaSetDevice(index_), "choosing the device");
}

std::byte* Device::allocate(size_t bytes) {
  makeCurrent();
  // zeroing comes after copies
  if (libraries_->copies != nullptr) libraries_->copies->beforeProgram();
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes), "allocating memory");
  cudaError_t cleared = cudaMemsetAsync(memory, 0, bytes, stream_);
  // Copies beside the stream wait for nothing on it.
  if (cleared == cudaSuccess) cleared = cudaStreamSynchronize(stream_);
  if (cleared != cudaSuccess) (void)cudaFree(memory);
  check(cleared, "clearing memory");
  return static_cast<std::byte*>(memory);
}

void Device::deallocate(std::byte* memory) noexcept {
  (void)cudaSetDevice(index_);
  (void)cudaFree(memory);
}

void Device::copyToDevice(std::byte* target, const std::byte* source, size_t bytes) {
  makeCurrent();
  libraries_->copies->toDevice(target, source, bytes);
}

void Device::copyToHost(std::byte* target, const std::byte* source, size_t bytes) {
  makeCurrent();
  libraries_->copies->toHost(target, source, bytes);
}

void Device::copyToDeviceBeside(std::byte* target, const std::byte* source, size_t bytes) {
  makeCurrent();
  libraries_->copies->toDeviceBeside(target, source, bytes);
}

void Device::copyToHostBeside(std::byte* target, const std::byte* source, size_t bytes) {
  makeCurrent();
  libraries_->copies->toHostBeside(target, source, bytes);
}

void Device::awaitHost(size_t copies) {
  makeCurrent();
  libraries_->copies->awaitBeside(copies);
}

// Once for each peer. Without a link, or with too many peers, the driver copies through the host by
// itself.
void Device::reach(const Device& peer) {
  if (peer.index_ == index_ || std::ranges::find(reached_, peer.index_) != reached_.end()) return;
  int has_link = 0;
  check(cudaDeviceCanAccessPeer(&has_link, index_, peer.index_), "asking for a link to a GPU");
  if (has_link != 0) {
    const cudaError_t enabled = cudaDeviceEnablePeerAccess(peer.index_, 0);
    if (enabled == cudaErrorPeerAccessAlreadyEnabled || enabled == cudaErrorTooManyPeers)
      (void)cudaGetLastError();
    else
      check(enabled, "using the link to a GPU");
  }
  reached_.push_back(peer.index_);
}

void Device::copyFromPeer(std::byte* target, const Device& peer, const std::byte* source,
                          size_t bytes) {
  makeCurrent();
  reach(peer);
  libraries_->copies->beforeProgram();
  check(cudaMemcpyPeerAsync(target, index_, source, peer.index_, bytes, stream_),
        "copying from another GPU");
}

// A program ends with a copy of the kernels' reports: see program.cc.
void Device::synchronise() {
  // It may return an earlier error; so does the next call, once nothing is in transit to the host.
  (void)cudaSetDevice(index_);
  const cudaError_t computed = cudaStreamSynchronize(stream_);
  if (computed != cudaSuccess) libraries_->copies->forget();
  check(computed, "computing");
  libraries_->copies->wait();
  throwIfBadData();
}

void Device::afterPreparing() {
  libraries_->kept->save();
}

void Device::beforeProgram() {
  libraries_->copies->beforeProgram();
}

void Device::throwIfBadData() {
  if (reported_->raised == 0) return;
  const BadData raised = *reported_;
  *reported_ = {};
  check(cudaMemsetAsync(bad_data_, 0, sizeof(BadData), stream_), "clearing a report");
  throw PluginError(
      DTF_PLUGIN_BAD_DATA,
      badDataMessage(sources_.at(static_cast<size_t>(raised.source)), raised.index, raised.value));
}

void Device::fetchReport() {
  check(cudaMemcpyAsync(reported_, bad_data_, sizeof(BadData), cudaMemcpyDeviceToHost, stream_),
        "reading the reports of kernels");
}

std::byte* Device::workspace(size_t bytes) {
  if (bytes > workspace_bytes_) {
    workspaces_.push_back(allocate(bytes));
    workspace_bytes_ = bytes;
  }
  return workspaces_.empty() ? nullptr : workspaces_.back();
}

}  // namespace dtf::gpu
