#pragma once

// A disk in memory that can fail, fill up, crash the program at any operation, and lose power. Data
// without fsync is then lost, kept or half kept, depending on a seed. A name is durable once its
// folder is synced, bytes once their file is.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/file_system.h"

namespace dtf::testing {

// Thrown where the process would have died. It is no Error, so that no handler can mistake it.
struct SimulatedCrash {};

// Threads: one.
// Errors: as FileSystem; SimulatedCrash from every operation once it has crashed.
class SimulatedDisk final : public FileSystem {
 public:
  enum class Op { kCreate, kWrite, kSync, kClose, kMakeFolder, kRename, kRemove, kSyncFolder };

  SimulatedDisk();
  ~SimulatedDisk() override;

  std::unique_ptr<WritableFile> create(const Path& file) override;
  std::unique_ptr<ReadableFile> open(const Path& file) override;
  std::vector<FolderEntry> list(const Path& folder) override;
  bool exists(const Path& path) override;
  void makeFolder(const Path& folder) override;
  void rename(const Path& from, const Path& to) override;
  void removeFile(const Path& file) override;
  void removeFolder(const Path& folder) override;
  void syncFolder(const Path& folder) override;

  // The operations so far, without reads. The first has index 0.
  const std::vector<Op>& operations() const { return operations_; }

  // Crashes the process at the operation `index`, which doesn't happen (a write happens by half).
  void crashAt(size_t index) { crash_at_ = index; }
  // Fails the operation `index`. A failed sync loses the file's unsynced bytes, even if a later one
  // succeeds.
  void failAt(size_t index, int errno_value);
  // Fails every later operation of this kind; a full disk is kCreate, kWrite and kMakeFolder.
  void failAll(Op kind, int errno_value) { failing_[kind] = errno_value; }
  void heal();  // removes all faults, future ones included

  // Starts another process after a crash; everything written before is there.
  void restart();
  // Cuts the power and restores it. This ends a crash, too.
  void powerCut(uint64_t seed);

  // Access for damaging files on the disk.
  std::vector<Path> files() const;  // all of them, sorted
  std::string contents(const Path& file) const;
  void setContents(const Path& file, std::string bytes);  // of a file that exists

 private:
  struct Node;
  struct EntryChange;
  class OpenForWriting;
  class OpenForReading;

  std::shared_ptr<Node> find(const Path& path) const;
  std::shared_ptr<Node> folderOf(const Path& path, const char* what) const;
  // Counts an operation and returns the errno with which it must fail; 0: go on.
  int begin(Op op);
  static void change(const std::shared_ptr<Node>& folder, EntryChange change);

  std::shared_ptr<Node> root_;
  std::vector<Op> operations_;
  std::optional<size_t> crash_at_;
  bool crashed_ = false;
  std::map<size_t, int> fail_at_;
  std::map<Op, int> failing_;
};

}  // namespace dtf::testing
