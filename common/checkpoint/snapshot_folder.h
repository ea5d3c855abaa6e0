#pragma once

// Snapshots: copies of one ps's shard at recent cuts. They are files in /dev/shm, so they outlive
// the process. A snapshot is a checkpoint of one shard, with the same shard file and manifest. A
// cut is usable only if every ps has a snapshot of it; the chief finds that out.
//
//   /dev/shm/dtf-1000-mnist-9f86d081884c7d65/    job mnist of user 1000 in one run_dir
//     ps-1/                                      the snapshots of ps/1
//       cut-10002f3-120/                         a snapshot: epoch (hexadecimal) and step
//       cut-10002f3-140.tmp/                     a snapshot that is being written
//     sum-worker-0                               no snapshot: see hostSumFile()
//
// The rename seals a snapshot: a reader finds a whole one or none.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/file_system.h"
#include "common/checkpoint/held_values.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/restore.h"

namespace dtf::checkpoint {

// The location of a job's snapshots on a host.
struct SnapshotPlace {
  std::filesystem::path folder;  // the job's; empty: the job keeps no snapshots
  // Throws kCannotWrite when another user could write to an existing folder, and so change the
  // model. Empty: no check.
  std::function<void(const std::filesystem::path&)> check{};
  // Returns the space of the memory that holds the folder; empty: unknown.
  std::function<std::filesystem::space_info(const std::filesystem::path&)> space{};
};

// Returns a place in /dev/shm. The folder's name holds the user, the job and a digest of the run
// directory.
SnapshotPlace sharedMemoryPlace(const std::string& job, const std::filesystem::path& run_dir);

// Removes all snapshots on this host of a job that has ended; logs those it can't remove. Returns
// whether there was a folder.
// Blocks: as long as the kernel takes to free the memory.
bool removeSnapshots(FileSystem& file_system, const SnapshotPlace& place);

// Returns the file in which the workers of one host sum their gradients (exchange/host_sum.h).
// `leader`: their lowest rank.
std::filesystem::path hostSumFile(const SnapshotPlace& place, uint32_t leader);

// Removes the files of sums that killed workers have left, and the folder if nothing else is in it.
// Logs those it can't remove. No worker of the job may run.
void removeHostSums(FileSystem& file_system, const SnapshotPlace& place);

// Borrows: `file_system`.
// Threads: one at a time.
// Blocks: while it copies.
// Errors: kCannotWrite, naming the sizes when the memory is too small; kBadData when a snapshot
// can't be read.
class SnapshotFolder {
 public:
  // Doesn't access the folder.
  SnapshotFolder(FileSystem& file_system, SnapshotPlace place, uint32_t ps_task);

  // Returns the sealed snapshots whose file has the manifest's size, oldest first. Only read()
  // verifies checksums.
  std::vector<CutName> list() const;

  // Writes `parts` as snapshot `name`, after it has removed all others but `keep`: at most two take
  // memory. `manifest` describes the parts; its `shards` must be empty. Returns the size of the
  // shard file.
  uint64_t write(const CutName& name, const std::optional<CutName>& keep, Manifest manifest,
                 std::span<const TensorPart> parts);

  Manifest manifest(const CutName& name) const;
  void read(const CutName& name, const Manifest& manifest,
            std::span<const WantedPart> wanted) const;

  // Logs a file that can't be removed, as the next two do.
  void remove(const CutName& name);
  void removeAllBut(const std::optional<CutName>& keep);
  // Also removes this ps's folder, and the job's if no other ps has one there.
  void removeAll();

 private:
  std::filesystem::path pathOf(const CutName& name) const;
  bool isThere() const;
  void makeFolders();
  void requireRoom(uint64_t bytes) const;
  bool isWhole(const CutName& name) const;

  FileSystem& file_system_;
  const SnapshotPlace place_;
  const std::filesystem::path folder_;  // of this ps
};

}  // namespace dtf::checkpoint
