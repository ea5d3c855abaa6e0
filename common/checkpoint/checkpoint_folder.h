#pragma once

// The chief's view of <run_dir>/checkpoints. It commits attempts atomically, prunes old
// checkpoints, and finds the newest whole one after any crash.
//
//   step-120/                  a checkpoint: shard-<i>-of-<n>.safetensors, manifest.json
//   step-130.tmp-1f3a.1/       the first attempt of process 1f3a
//   step-90.trash-1f3a.2/      a checkpoint that is being removed
//   seen-1f3a.3                a mark: the ps look for it to find out whether they share the folder
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

// A damaged checkpoint that latestValid() skipped.
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
  std::vector<Rejected> rejected;  // newer than `found`, newest first
};

struct KeepRule {
  uint32_t keep = 5;  // newest whole checkpoints to keep: TensorFlow's max_to_keep; 0: all
  // TensorFlow's keep_checkpoint_every_n_hours, by Manifest::run_seconds: from the second interval
  // on, the first whole checkpoint of each is kept for good. 0: none is.
  double keep_every_hours = 10'000;
  std::vector<uint64_t> also{};  // steps to keep in addition; they don't count towards `keep`
};

enum class CommitOutcome {
  kCommitted,
  kKeptExisting,  // a whole checkpoint of this step exists: it is kept, the attempt is removed
};

// Owns: the attempt under way.
// Borrows: `file_system`, `staying`.
// Threads: one at a time.
// Blocks: on the disk, and until `staying` has answered.
// Errors: kCannotWrite; the errors of `staying`. An error harms no visible checkpoint.
class CheckpointFolder {
 public:
  // Doesn't access the disk. `incarnation`: the chief's, which makes the names of its attempts
  // unique. `staying`: set if the shards of new checkpoints stay with the ps; older ones may, too.
  CheckpointFolder(FileSystem& file_system, std::filesystem::path folder, Incarnation incarnation,
                   StayingFiles* staying = nullptr);

  const std::filesystem::path& path() const { return folder_; }
  std::filesystem::path stepFolder(uint64_t step) const;

  // Makes the folder and its missing parents, durably.
  void prepare();

  // Removes the leftovers of dead processes: attempts, marks, and checkpoints half removed. Only
  // the chief may call it, and only while no other live process can have an attempt under way.
  // Returns the number of folders removed.
  uint32_t sweepStale();

  // Makes an empty file under a name never used before and returns the name. A ps that finds the
  // file shares this folder. sweepStale() removes the marks of dead processes.
  // Errors: kCannotWrite.
  std::string showMark();
  void removeMark();

  // Starts anew without losing checkpoints: if there are any, renames the folder to "<name>.old-N",
  // N the first free number, and makes an empty one in its place. Returns the new path. No attempt
  // may be under way. On an error the rename is undone; if that fails, too, it is logged.
  std::optional<std::filesystem::path> setAside();
  // Undoes setAside(), while the folder is empty.
  void putBack(const std::filesystem::path& aside);

  // Makes the folder of a new attempt and returns its name (not its path), for the ps tasks. No
  // attempt may be under way; after an error none is.
  std::string beginAttempt(uint64_t step);

  // Checks that every shard file exists with its size, writes the manifest, and makes the
  // checkpoint visible and durable. `manifest.global_step` must be the attempt's step. After an
  // error the attempt is poisoned: abandon() it and begin another.
  CommitOutcome commit(const Manifest& manifest);

  // Removes the attempt if it can; else sweepStale() removes it later.
  void abandon();

  // Returns the newest checkpoint that verifies. kFull reads every byte of it. A folder that
  // doesn't exist holds no checkpoints.
  // Errors: kBadData when the folder can't be listed; kPermission when a checkpoint newer than the
  // newest whole one can't be read by this user.
  Latest latestValid(VerifyDepth depth = VerifyDepth::kFull);

  // Removes the oldest checkpoints beyond `rule`, never the last whole one. Damaged checkpoints, as
  // far as known without reading them again, don't count towards `rule.keep`. Renames each folder
  // before it removes the files. Returns the removed steps.
  std::vector<uint64_t> prune(const KeepRule& rule);

  // Removes the checkpoint of step 0, the initial values, once the newest one is later and whole.
  void removeInitial();

  std::vector<uint64_t> steps();  // of the visible checkpoints, whole or not, ascending

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
  std::vector<Kept> judgeBySizes();  // and by `whole_`
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
    bool was_visible = false;  // under a checkpoint's name, which may return after a power cut
  };
  std::optional<Attempt> attempt_;
  uint64_t names_used_ = 0;
  bool warned_of_shards_ = false;
  std::string mark_;  // name of the current mark file; empty: none
  // Steps committed or fully verified by this object, and those whose manifest or size is wrong.
  std::map<uint64_t, bool> whole_;
};

}  // namespace dtf::checkpoint
