#pragma once

// Makes and restores the checkpoints of a job: one consistent cut over all ps, written by each of
// them, committed by the chief. What to do when is the supervisor's affair (supervisor.h).
//
// At which position to cut. sync: every step is a cut; the ps are told one that none has passed, and
// each captures its shard as it gets there. async: the ps hold new pushes, say which they have, and
// let those come that another ps has already: then all have the same, and nobody lost one. In both
// modes the capture shares the parameters and copies the slots; files are written afterwards, while
// training goes on.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/checkpoint/checkpoint_client.h"
#include "common/checkpoint/checkpoint_folder.h"
#include "common/cluster/spec.h"
#include "common/ps/parameter_client.h"

namespace dtf::train {

struct CheckpointerOptions {
  std::string job;
  std::filesystem::path run_dir;  // the same files for the chief and every ps
  Incarnation incarnation;        // the chief's
  uint32_t workers = 1;
  cluster::CheckpointSpec spec;
  cluster::DataSpec data;
  cluster::ModelSpec model;
  bool fresh = false;  // start anew; what checkpoints there are is set aside
};

// What a job goes on from.
struct Resumed {
  uint64_t step = 0;
  std::filesystem::path checkpoint;
  std::string saved;                 // wall clock, a label
  std::vector<std::string> changes;  // settings since then: "optimizer.learning_rate 0.01 -> 0.02"
};

// One checkpoint that was saved.
struct SavedCheckpoint {
  uint64_t global_step = 0;
  uint64_t bytes = 0;
  double seconds = 0;  // from the request to the last fsync
  // How long training was held up: by the longest capture; sync: and by the chief's wait until
  // every ps knew the cut; async: by the hold, from the question where each ps is.
  double stall_seconds = 0;
};

// What the training threads are doing meanwhile.
enum class Motion { kTraining, kAtRest };

// Owns: the view of the checkpoint folder.
// Borrows: all references given to the constructor.
// Threads: one at a time, but callOffCuts().
// Blocks: until every ps has written or read; their deadlines.
// Errors: kCannotWrite and kBadData of the files; those of the CheckpointClient. After an error
// another save may be tried.
class Checkpointer {
 public:
  Checkpointer(FileSystem& file_system, const Clock& clock, checkpoint::CheckpointClient& client,
               const ps::ModelDeclaration& declaration, CheckpointerOptions options);

  // At the chief's start, in place of initial values. True: the ps hold values now, from the newest
  // whole checkpoint, or from an earlier process of the chief. False: there is no checkpoint, start
  // anew.
  // Errors: kBadConfig with the difference when the checkpoint is of another job or model, or when
  // the job is to start anew on ps that hold values; kBadData with
  // the reasons when there are checkpoints and none can be used.
  bool restore();

  // Nullopt: restore() has not restored a checkpoint.
  const std::optional<Resumed>& resumed() const { return resumed_; }

  // sync: tells the ps to capture themselves at `step`; the next save() saves that. On return every
  // ps knows.
  // Blocks: whoever calls it, and the time counts as a stall.
  void startCut(uint64_t step);

  // Nullopt: the last checkpoint is of this very cut already.
  std::optional<SavedCheckpoint> save(Motion motion);

  // From any thread: a save() that waits for its cut fails soon, as later ones do; one
  // that has captured it is written.
  void callOffCuts() { client_.callOffCuts(); }

  std::optional<uint64_t> lastStep() const { return last_step_; }  // saved or restored

 private:
  // One that every ps has captured.
  struct Cut {
    CutPosition position;
    uint64_t global_step = 0;
    Duration held_up{};  // see SavedCheckpoint::stall_seconds, without the capture itself
  };
  bool cutsAtStep() const;
  std::optional<Cut> takeCut(Motion motion);
  std::optional<Cut> takeStartedCut();
  std::optional<Cut> tryFurthestCut(Motion motion, uint64_t margin);
  CutPosition furthestPosition(bool hold);
  void releaseHold();
  void prune();
  void startFresh();
  void noteResumed(const checkpoint::Latest::Found& found);
  std::string differenceTo(const checkpoint::Manifest& saved) const;
  checkpoint::Manifest manifestAt(const CutPosition& position, uint64_t global_step) const;
  SavedCheckpoint write(const Cut& cut, TimePoint begin);

  const Clock& clock_;
  checkpoint::CheckpointClient& client_;
  const ps::ModelDeclaration declaration_;
  const CheckpointerOptions options_;
  checkpoint::CheckpointFolder folder_;
  const TimePoint started_;
  double run_seconds_before_ = 0;  // of the processes before this one
  std::optional<Cut> cut_;         // told to every ps by startCut(); its step is what is hoped for
  std::optional<uint64_t> last_step_;
  std::optional<Resumed> resumed_;
};

}  // namespace dtf::train
