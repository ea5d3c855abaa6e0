#pragma once

// One device: its memory, its one stream, what its kernels report. Without CUDA's headers, so that
// the kernels and the boundary can be built for the host as well: device.cc is CUDA's,
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

// What index and value of BadData mean; texts for the message. Value type.
struct BadDataSource {
  std::string node;
  bool labels = true;  // classes of rows; else rows of a table
  int64_t classes = 0;
  bool operator==(const BadDataSource&) const = default;
};
// "Node 'x': the label of row 2 is 10, it must be in [0, 10). ..."
std::string badDataMessage(const BadDataSource& source, int64_t index, double value);

// Owns: the stream, the library handles, the memory of workspace() and of what kernels report.
// Threads: one at a time.
// Blocks: synchronise(); awaitHost(); copies of memory that isn't pinned.
// Errors: PluginError: kUnavailable where the device is out of memory or fails, kBadData from
// synchronise(), once for each time that a kernel raised it.
class Device {
 public:
  // How many there are; `why`: of none, what is missing.
  static int count(std::string& why);

  explicit Device(int index);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const std::string& description() const { return description_; }

  // Makes it the calling thread's: before any other call of the runtime.
  void makeCurrent() const;

  std::byte* allocate(size_t bytes);  // zeroed
  void deallocate(std::byte* memory) noexcept;
  void copyToDevice(std::byte* target, const std::byte* source, size_t bytes);
  void copyToHost(std::byte* target, const std::byte* source, size_t bytes);
  // As dtf_device_plugin has them: in no order with the programs but that.
  void copyToDeviceBeside(std::byte* target, const std::byte* source, size_t bytes);
  void copyToHostBeside(std::byte* target, const std::byte* source, size_t bytes);
  void awaitHost(size_t copies);
  // By the link between the two, or by way of the host where the driver has none. `peer` must have
  // been waited for.
  void copyFromPeer(std::byte* target, const Device& peer, const std::byte* source, size_t bytes);
  void synchronise();
  // All kernels of a program are prepared: what was chosen for them is kept.
  void afterPreparing();
  // A program comes after all copies to the device.
  void beforeProgram();

  Stream stream() const { return stream_; }
  BadData* badData() const { return bad_data_; }
  int32_t addSource(const BadDataSource& source);
  // Queues the copy of what kernels reported that synchronise() reads: the end of a program.
  void fetchReport();

  // Memory that kernels use one after the other, never two at once; valid until the device ends.
  // Not while a program is captured.
  std::byte* workspace(size_t bytes);

  // Counts a kernel that was given to the stream.
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
  BadData* bad_data_ = nullptr;  // the device's
  BadData* reported_ = nullptr;  // its copy for the host
  std::vector<BadDataSource> sources_;
  std::vector<std::byte*> workspaces_;
  size_t workspace_bytes_ = 0;  // of the last of them
  uint64_t launched_ = 0;
  std::vector<int> reached_;  // devices whose memory this one has been told to use
  std::unique_ptr<Libraries> libraries_;
};

}  // namespace dtf::gpu
