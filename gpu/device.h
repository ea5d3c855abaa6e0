#pragma once

// One device: its memory, its single stream, the reports of its kernels. Without CUDA's headers, so
// that kernels and boundary also build for the host: device.cc is CUDA's implementation,
// tests/gpu/host_device.cc the host's.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gpu/bad_data.h"

struct CUstream_st;

namespace dtf::gpu {

using Stream = CUstream_st*;  // cudaStream_t

// The meaning of index and value in BadData, for messages. Value type.
struct BadDataSource {
  std::string node;
  bool labels = true;  // classes of rows; otherwise rows of a table
  int64_t classes = 0;
  bool operator==(const BadDataSource&) const = default;
};
// Returns "Node 'x': the label of row 2 is 10, it must be in [0, 10). ..."
std::string badDataMessage(const BadDataSource& source, int64_t index, double value);

// Owns: the stream, the library handles, the memory of workspace() and of the kernels' reports.
// Threads: one at a time.
// Blocks: synchronise(); awaitHost(); copies of memory that isn't pinned.
// Errors: PluginError: kUnavailable if the device is out of memory or fails; kBadData from
// synchronise(), once for each report.
class Device {
 public:
  // Returns the number of devices; if it is 0, `why` receives the reason.
  static int count(std::string& why);

  explicit Device(int index);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const std::string& description() const { return description_; }

  // Makes it the calling thread's device: before any other call of the runtime.
  void makeCurrent() const;

  std::byte* allocate(size_t bytes);  // zeroed
  void deallocate(std::byte* memory) noexcept;
  void copyToDevice(std::byte* target, const std::byte* source, size_t bytes);
  void copyToHost(std::byte* target, const std::byte* source, size_t bytes);
  // See dtf_device_plugin: ordered with the programs only as far as stated there.
  void copyToDeviceBeside(std::byte* target, const std::byte* source, size_t bytes);
  void copyToHostBeside(std::byte* target, const std::byte* source, size_t bytes);
  void awaitHost(size_t copies);
  // Copies over the link between the two, or through the host if the driver has none. `peer` must
  // be idle.
  void copyFromPeer(std::byte* target, const Device& peer, const std::byte* source, size_t bytes);
  void synchronise();
  // Called when all kernels of a program are prepared: saves the chosen ways.
  void afterPreparing();
  // Makes a program wait for all copies to the device.
  void beforeProgram();

  Stream stream() const { return stream_; }
  BadData* badData() const { return bad_data_; }
  int32_t addSource(const BadDataSource& source);
  // Queues the copy of the kernels' reports that synchronise() reads: the end of a program.
  void fetchReport();

  // Returns memory that kernels use one after the other, never two at once; valid until the device
  // ends. Must not be called while a program is captured.
  std::byte* workspace(size_t bytes);

  // Counts a kernel that was queued on the stream.
  void countLaunch() { ++launched_; }
  void countLaunches(uint64_t launches) { launched_ += launches; }
  uint64_t launched() const { return launched_; }

  struct Libraries;  // cuBLASLt and cuDNN
  Libraries& libraries() const { return *libraries_; }

 private:
  void throwIfBadData();
  void reach(const Device& peer);

  int index_ = 0;
  std::string description_;
  Stream stream_ = nullptr;
  BadData* bad_data_ = nullptr;  // on the device
  BadData* reported_ = nullptr;  // its copy on the host
  std::vector<BadDataSource> sources_;
  std::vector<std::byte*> workspaces_;
  size_t workspace_bytes_ = 0;  // of the last one
  uint64_t launched_ = 0;
  std::vector<int> reached_;  // devices whose memory this one may access
  std::unique_ptr<Libraries> libraries_;
};

}  // namespace dtf::gpu
