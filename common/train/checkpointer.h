#pragma once

// Makes and restores the checkpoints of a job: one consistent cut over all ps, written by each of
// them, where all see or where it stays (checkpoint/staying_shards.h), or by the chief that gathers
// it (gathered_files.h), committed by the chief. What to do when is the supervisor's affair
// (supervisor.h).
//
// At which position to cut. sync: every step is a cut; the ps are told one that none has passed,
// and each captures its shard as it gets there. async: the ps hold new pushes, say which they have,
// and let those come that another ps has already: then all have the same, and nobody lost one. In
// both modes the capture shares the parameters and copies the slots; files are written afterwards,
// while training goes on.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/checkpoint/checkpoint_client.h"
#include "common/checkpoint/checkpoint_folder.h"
#include "common/checkpoint/staying_files.h"
#include "common/cluster/spec.h"
#include "common/data/data_signature.h"
#include "common/ps/job_recovery.h"
#include "common/ps/parameter_client.h"

namespace dtf::train {

struct CheckpointerOptions {
  std::string job;
  // The same files for the chief and every ps, unless `gather` or `stay`.
  std::filesystem::path run_dir;
  Incarnation incarnation;  // the chief's
  uint32_t workers = 1;
  std::optional<cluster::CheckpointSpec> spec;  // none: nothing is written to the disk
  cluster::DataSpec data;
  model::ModelSpec model;
  bool fresh = false;      // start anew; what checkpoints there are is set aside
  bool snapshots = false;  // the ps keep them
  bool replicas = false;   // ditto, each the next one's
  std::optional<data::DataSignature> signature;  // of the training data
  bool gather = false;                           // checkpoints' files are the chief's alone
  // Else: a ps is on another host, so whether it has the chief's files is to be seen.
  bool elsewhere = false;
  bool stay = false;  // each ps keeps its shards; only with `ps_hosts`
  std::vector<std::string> ps_hosts{};
  uint64_t epochs = 0;                     // that the job trains; 0: the file says steps
  std::optional<uint64_t> reached_step{};  // see ps::ChiefWord::reached
  // Returns the steps of checkpoints that stay beside those of `spec`. Called on the thread that
  // saves; null: there are none.
  std::function<std::vector<uint64_t>()> keeps_also{};
};

// What a job goes on from.
struct Resumed {
  uint64_t step = 0;
  std::filesystem::path checkpoint;
  std::string saved;                 // wall clock, a label
  std::vector<std::string> changes;  // settings since then: "optimizer.learning_rate 0.01 -> 0.02"
};

// What became of a job whose ps was started again.
struct WentBack {
  uint64_t step = 0;        // that it went back to
  uint64_t steps_lost = 0;  // that are done again
  std::string
      reason;  // "ps/1 lost its values: all go back 37 steps to the checkpoint of step 4963"
  bool to_snapshot = false;  // else a checkpoint
};

// With what a job begins.
struct GoesOn {
  std::optional<Resumed> resumed;     // the checkpoint that was restored
  std::optional<WentBack> went_back;  // ps had lost their values, or a snapshot is gone on from
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

// One snapshot that every ps keeps.
struct TakenSnapshot {
  uint64_t global_step = 0;
  uint64_t bytes = 0;
  double stall_seconds = 0;  // as SavedCheckpoint's
};

// In the manifest's `extra`.
inline constexpr char kModelKey[] = "model";
inline constexpr char kSettingsKey[] = "settings";
inline constexpr char kEpochKey[] = "epoch";
inline constexpr char kEpochsKey[] = "epochs";  // of the data, where the file says so many
inline constexpr char kSignatureKey[] = "data_signature";  // see data/data_signature.h
// Of the classes alone, as dtf 0.1.0 writes and reads them; see saved_signature.h.
inline constexpr char kClassesKey[] = "classes";

// Returns what a manifest says of the optimizer: its name, and which slots it has.
std::string optimizerText(const cluster::OptimizerSpec& optimizer);

// Of which cut a checkpoint is.
// Errors: kBadData for an epoch that is none.
ps::CutName cutOf(const checkpoint::Manifest& manifest);

// What the training threads are doing meanwhile.
enum class Motion { kTraining, kAtRest };

// Owns: the view of the checkpoint folder, where the job keeps checkpoints.
// Borrows: all references given to the constructor.
// Threads: one at a time, but callOffCuts().
// Blocks: until every ps has written or read; their deadlines.
// Errors: kCannotWrite and kBadData of the files; those of the CheckpointClient. After an error
// another save may be tried.
class Checkpointer {
 public:
  Checkpointer(FileSystem& file_system, const Clock& clock, checkpoint::CheckpointClient& client,
               const ps::ModelDeclaration& declaration, CheckpointerOptions options);

  // At the chief's start. Nullopt: the ps hold values now, from the newest whole checkpoint, or
  // from an earlier process of the chief. Else there is no checkpoint: start anew, with initial
  // values of this epoch.
  // Errors: kBadConfig with the difference when the checkpoint is of another job or model, or when
  // the job is to start anew on ps that hold values, or when a ps doesn't see the chief's files;
  // kBadData with
  // the reasons when there are checkpoints and none can be used, or when ps have lost their values
  // and there is none.
  std::optional<uint64_t> restore();

  // Once the ps hold values and before this chief trains: saves these, unless there is a
  // checkpoint. So there is one to go back to at any time; the next one replaces it. That it can't
  // be written is logged. In a job without checkpoints it is a snapshot, or that the replicas are
  // whole.
  // Errors: kUnavailable, kDeadline when a ps is lost meanwhile.
  void saveInitial();
  void awaitFirstReplicas();

  // Both, and again when a ps is lost meanwhile. As restore(), it is to be called until it says
  // nullopt: so all ps hold values of one epoch before anybody trains. The initial checkpoint is
  // given up after some tries.
  std::optional<uint64_t> start();

  // After a ps was started again: takes all to the newest cut that every ps can have, a snapshot or
  // a checkpoint. A snapshot that turns out damaged is passed over. Nullopt: all hold their values.
  // `step`: the last global step that is known of.
  // Errors: kBadData when a ps has lost its values, and nothing holds them; kUnavailable, kDeadline
  // when another was lost meanwhile: to be tried again.
  std::optional<WentBack> recover(uint64_t step);

  // What restore() has found.
  const GoesOn& goesOn() const { return goes_on_; }

  // sync: tells the ps to capture themselves at `step`; the next save() saves that. On return every
  // ps knows.
  // Blocks: whoever calls it, and the time counts as a stall.
  void startCut(uint64_t step);

  // Nullopt: the last checkpoint is of this very cut already. Only where the job keeps checkpoints.
  std::optional<SavedCheckpoint> save(Motion motion);

  // Every ps keeps its shard at one cut in memory. Nullopt: the last snapshot is of this very cut.
  // Only where the ps keep snapshots.
  std::optional<TakenSnapshot> snapshot(Motion motion);

  // From any thread: a save() that waits for its cut fails soon, as later ones do; one
  // that has captured it is written.
  void callOffCuts() { client_.callOffCuts(); }
  // Likewise, but only a save() under way.
  void interruptCuts() { client_.interruptCuts(); }

  std::optional<uint64_t> lastStep() const { return last_step_; }  // saved or restored

 private:
  // One that every ps has captured.
  struct Cut {
    CutPosition position;
    uint64_t global_step = 0;
    Duration held_up{};  // see SavedCheckpoint::stall_seconds, without the capture itself
  };
  void prepare();
  void checkShared();
  std::vector<checkpoint::SavedShard> saveShards(const std::string& attempt,
                                                 const CutPosition& position);
  void noteWhereTheyStay(const std::string& attempt, checkpoint::Manifest& manifest) const;
  void releaseStaged(bool saved);
  bool cutsAtStep() const;
  void renewIfBroken();
  template <class Take>
  auto withRenewal(Motion motion, const Take& take);
  std::optional<TakenSnapshot> snapshotOnce(Motion motion);
  std::optional<SavedCheckpoint> saveOnce(Motion motion);
  checkpoint::Latest findLatest();
  void checkFits(const checkpoint::Latest::Found& found) const;
  ps::RecoveryDecision decide(const checkpoint::Latest& latest, uint64_t step,
                              bool with_snapshots = true);
  ps::RecoveryDecision decideAndGoBack(const checkpoint::Latest& latest, uint64_t step);
  bool goBack(const checkpoint::Latest& latest, const ps::RecoveryDecision& decision);
  void refill(const ps::RecoveryDecision& decision);
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
  double stallOf(const Cut& cut, double longest_capture) const;

  FileSystem& file_system_;
  const Clock& clock_;
  checkpoint::CheckpointClient& client_;
  const ps::ModelDeclaration declaration_;
  const CheckpointerOptions options_;
  std::optional<checkpoint::StayingFiles> staying_;     // where the ps keep their shards
  std::optional<checkpoint::CheckpointFolder> folder_;  // where the job keeps checkpoints
  const TimePoint started_;
  double run_seconds_before_ = 0;  // of the processes before this one
  std::optional<Cut> cut_;         // told to every ps by startCut(); its step is what is hoped for
  std::optional<uint64_t> last_step_;           // of a checkpoint
  std::optional<ps::CutName> common_snapshot_;  // the newest that every ps keeps
  bool prepared_ = false;                       // what earlier processes of the chief left is gone
  bool shared_ = false;                         // all ps have the chief's files
  uint64_t named_ = 0;                          // see ps::ChiefWord
  uint64_t begun_ = 0;                          // the last epoch that this chief began
  uint64_t epoch_ = 0;                          // of the values; 0: not known yet
  bool broken_ = false;     // a connection, since the ps were asked for their part
  bool continued_ = false;  // with the values of an earlier process of the chief
  GoesOn goes_on_;
};

}  // namespace dtf::train
