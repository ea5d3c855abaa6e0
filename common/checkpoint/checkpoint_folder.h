#pragma once

// The chief's view of <run_dir>/checkpoints: one attempt after another becomes visible whole or not
// at all, old checkpoints go, and after any crash the newest whole one is found.
//
//   step-120/                  a checkpoint: shard-<i>-of-<n>.safetensors, manifest.json
//   step-130.tmp-1f3a.1/       an attempt: of the process 1f3a, its first
//   step-90.trash-1f3a.2/      being removed
//   seen-1f3a.3                a file that is looked for from other hosts, for a moment
//
// An attempt: chief beginAttempt() -> every ps writeShard() into that folder -> chief commit().

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/file_system.h"
#include "common/base/ids.h"
#include "common/checkpoint/verify.h"

namespace dtf::checkpoint {

// A checkpoint that was passed over.
struct Rejected {
  uint64_t step = 0;
  std::vector<Problem> problems;
};

struct Latest {
  struct Found {
    std::filesystem::path folder;
    Manifest manifest;
  };
  std::optional<Found> found;      // nullopt: there is no whole checkpoint
  std::vector<Rejected> rejected;  // those newer than it, newest first
};

struct KeepRule {
  uint32_t keep = 5;  // whole ones: TensorFlow's max_to_keep; 0: all
  // TensorFlow's keep_checkpoint_every_n_hours, by Manifest::run_seconds: the first checkpoint in
  // every such stretch after the first stays for good. 0: none does.
  double keep_every_hours = 10'000;
  std::vector<uint64_t> also{};  // the steps of others that stay; they take no place of `keep`
};

enum class CommitOutcome {
  kCommitted,
  kKeptExisting,  // the same step was there, whole: it stays, the attempt is removed
};

// Owns: the attempt under way.
// Borrows: `file_system`, `staying`.
// Threads: one at a time.
// Blocks: on the disk, and until `staying` has answered.
// Errors: kCannotWrite; those of `staying`. Nothing that was visible before is harmed by one.
class CheckpointFolder {
 public:
  // Touches nothing yet. `incarnation` is the chief's own: it tells its attempts from another's.
  // `staying`: the shards of new checkpoints stay with the ps, and those of others may.
  CheckpointFolder(FileSystem& file_system, std::filesystem::path folder, Incarnation incarnation,
                   StayingFiles* staying = nullptr);

  const std::filesystem::path& path() const { return folder_; }
  std::filesystem::path stepFolder(uint64_t step) const;

  // Makes the folder, and those above it, durably, when it isn't there.
  void prepare();

  // Removes what dead processes left behind: attempts, and checkpoints half removed. Only the chief
  // may, and only while no attempt of another live process can be under way. Returns how many.
  uint32_t sweepStale();

  // Makes an empty file of a name that nobody has used before, for others to see whether they have
  // this folder, and returns its name. One of a process that died goes with sweepStale().
  // Errors: kCannotWrite.
  std::string showMark();
  void removeMark();

  // Starts anew without losing anything: when there are checkpoints, the folder becomes its own
  // sibling "<name>.old-N", N the first that is free, and an empty one takes its place. Returns
  // where they are now. No attempt may be under way. After an error they are where they were,
  // unless the disk does not take that back either.
  std::optional<std::filesystem::path> setAside();
  // Takes that back, while the folder has nothing.
  void putBack(const std::filesystem::path& aside);

  // Makes the folder of a new attempt and returns its name (not its path), for the ps tasks. No
  // attempt may be under way; after an error none is.
  std::string beginAttempt(uint64_t step);

  // Checks that every shard file is there in its size, writes the manifest, makes the checkpoint
  // visible and durable. `manifest.global_step` is the attempt's step. After an error the attempt
  // is poisoned: abandon() it, and begin another.
  CommitOutcome commit(const Manifest& manifest);

  // Removes the attempt as far as that is possible; what can't be removed is swept later.
  void abandon();

  // The newest checkpoint that verifies. Reads every byte of it with kFull.
  // Errors: kBadData when the folder itself can't be listed; one that doesn't exist is empty;
  // kPermission for a checkpoint, newer than all that are whole, that this user may not read.
  Latest latestValid(VerifyDepth depth = VerifyDepth::kFull);

  // Removes the oldest checkpoints beyond the rule, never the last whole one. Damaged ones, as far
  // as is known without reading them again, take no place. Each is renamed before its files go.
  // Returns the steps removed.
  std::vector<uint64_t> prune(const KeepRule& rule);

  // Removes that of step 0, the initial values, once the newest one is a later one and whole.
  void removeInitial();

  std::vector<uint64_t> steps();  // what is visible, whole or not, ascending

 private:
  void checkShards(const Manifest& manifest) const;
  void publish(const Manifest& manifest);
  void moveToTrash(uint64_t step);
  void removeWithShards(const std::filesystem::path& folder, const std::string& staying_name);
  bool removeTrash(const std::filesystem::path& folder);
  struct Kept {
    uint64_t step = 0;
    bool whole = false;
    double run_seconds = 0;
  };
  std::vector<Kept> judgeBySizes();  // and by what is known of them already
  static std::vector<uint64_t> beyond(const KeepRule& rule, const std::vector<Kept>& all);
  bool isWhole(uint64_t step);
  std::string suffix(const char* kind);

  FileSystem& file_system_;
  const std::filesystem::path folder_;
  const Incarnation incarnation_;
  StayingFiles* const staying_;
  struct Attempt {
    uint64_t step = 0;
    std::filesystem::path folder;
    bool poisoned = false;
    bool was_visible = false;  // as a checkpoint, and perhaps will be after a power cut
  };
  std::optional<Attempt> attempt_;
  uint64_t names_used_ = 0;
  bool warned_of_shards_ = false;
  std::string mark_;  // the name of the file that is there; empty: none
  // Committed, or verified in full, by this object; damage that a manifest or a size shows, too.
  std::map<uint64_t, bool> whole_;
};

}  // namespace dtf::checkpoint
