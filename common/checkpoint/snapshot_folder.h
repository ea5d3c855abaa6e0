#pragma once

// Snapshots: cuts that one ps keeps of its own shard in memory that outlives its process, as files
// in /dev/shm. A checkpoint of one shard each, with the same shard file and a manifest that says
// how far it is; but the cut is whole only where every ps has it, which their chief finds out.
//
//   /dev/shm/dtf-1000-mnist-9f86d081884c7d65/    a user's job in one run_dir
//     ps-1/                                      one ps's
//       cut-10002f3-120/                         a snapshot: epoch (hexadecimal) and step
//       cut-10002f3-140.tmp/                     one that is being written
//
// The rename is the seal: who reads finds a whole one or none.

#include <compare>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/file_system.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/restore.h"

namespace dtf::checkpoint {

// Of which cut a snapshot is; see ps::CutName. Ordered by age.
struct SnapshotName {
  uint64_t epoch = 0;
  uint64_t step = 0;
  auto operator<=>(const SnapshotName&) const = default;
};

// Where the snapshots of a job lie on a host.
struct SnapshotPlace {
  std::filesystem::path folder;  // the job's; empty: it keeps none
  // Throws kCannotWrite when the folder that is there isn't ours alone: whoever else could write
  // to it could change the model. Empty: nobody else can.
  std::function<void(const std::filesystem::path&)> check{};
  // Of the memory that the folder is in; empty: it is not known.
  std::function<std::filesystem::space_info(const std::filesystem::path&)> space{};
};

// In /dev/shm. The name tells apart the user, the job and its run directory.
SnapshotPlace sharedMemoryPlace(const std::string& job, const std::filesystem::path& run_dir);

// Removes all snapshots of the job on this host, as far as that is possible: it has ended. Returns
// whether there were any.
// Blocks: as long as the kernel takes to free the memory.
bool removeSnapshots(FileSystem& file_system, const SnapshotPlace& place);

// Borrows: `file_system`.
// Threads: one at a time.
// Blocks: while it copies.
// Errors: kCannotWrite, naming the sizes when the memory is too small; kBadData for what can't be
// read.
class SnapshotFolder {
 public:
  // Touches nothing yet.
  SnapshotFolder(FileSystem& file_system, SnapshotPlace place, uint32_t ps_task);

  // The sealed ones, in the size that they say, oldest first. Their checksums are compared by
  // read().
  std::vector<SnapshotName> list() const;

  // Keeps `parts` under `name`, and of the earlier ones only `keep`: so two take memory at any
  // time. `manifest` says what they are; of its shards nothing is expected. Returns the file's
  // bytes.
  uint64_t write(const SnapshotName& name, const std::optional<SnapshotName>& keep,
                 Manifest manifest, std::span<const TensorPart> parts);

  Manifest manifest(const SnapshotName& name) const;
  void read(const SnapshotName& name, const Manifest& manifest,
            std::span<const WantedPart> wanted) const;

  // What can't be removed is logged.
  void remove(const SnapshotName& name);
  void removeAllBut(const std::optional<SnapshotName>& keep);
  // All of them, with this ps's folder; and the job's, when this was the last ps in it.
  void removeAll();

 private:
  std::filesystem::path pathOf(const SnapshotName& name) const;
  bool isThere() const;
  void makeFolders();
  void requireRoom(uint64_t bytes) const;
  bool isWhole(const SnapshotName& name) const;

  FileSystem& file_system_;
  const SnapshotPlace place_;
  const std::filesystem::path folder_;  // this ps's
};

}  // namespace dtf::checkpoint
