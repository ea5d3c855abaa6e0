#pragma once

// Saves and restores the checkpoints of a job. A checkpoint is one consistent cut over all ps,
// which the chief commits. Its shards are in one of three places: in a folder that all ps share, on
// the host of each ps (checkpoint/staying_shards.h), or gathered by the chief (gathered_files.h).
// The supervisor decides when to save (supervisor.h).
//
// How the position of a cut is chosen. sync: every step is a cut. The chief announces a step that
// no ps has passed, and each ps captures its shard when it gets there. async: the ps hold new
// pushes and report the pushes that they have applied. Each then accepts the held pushes that
// another ps has already applied, until all have the same. In both modes a capture shares the
// parameters and copies the slots. Files are written afterwards, while training goes on.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/arena/model_declaration.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/checkpoint/checkpoint_client.h"
#include "common/checkpoint/checkpoint_folder.h"
#include "common/checkpoint/staying_files.h"
#include "common/cluster/spec.h"
#include "common/data/data_signature.h"
#include "common/replication/job_recovery.h"

namespace dtf::train {

struct CheckpointerOptions {
  std::string job;
  // On a disk that the chief and every ps share, unless `gather` or `stay`.
  std::filesystem::path run_dir;
  Incarnation incarnation;  // the chief's
  uint32_t workers = 1;
  std::optional<cluster::CheckpointSpec> spec;  // none: the job keeps no checkpoints
  cluster::DataSpec data;
  model::ModelSpec model;
  bool fresh = false;                            // start anew, and set checkpoints aside
  bool snapshots = false;                        // the ps keep snapshots
  bool replicas = false;                         // each ps keeps a replica of another's shard
  std::optional<data::DataSignature> signature;  // of the training data
  bool gather = false;                           // the chief gathers and writes all files
  // Without `gather` and `stay`: a ps is on another host, so check that it sees the chief's files.
  bool elsewhere = false;
  bool stay = false;  // each ps keeps its shards on its host; needs `ps_hosts`
  std::vector<std::string> ps_hosts{};
  ShardHosts hosts{};                      // the tasks that host the shards
  uint64_t epochs = 0;                     // to train; 0: the job has `steps`
  std::optional<uint64_t> reached_step{};  // see replication::ChiefState::reached
  // Returns the steps of checkpoints to keep beside the steps of `spec`. Called on the thread that
  // saves; null: none.
  std::function<std::vector<uint64_t>()> keeps_also{};
};

// The checkpoint from which a job resumed.
struct Resumed {
  uint64_t step = 0;
  std::filesystem::path checkpoint;
  std::string saved;                 // creation time, for display
  std::vector<std::string> changes;  // changed settings: "optimizer.learning_rate 0.01 -> 0.02"
};

// The result of a recovery in which all ps went back.
struct WentBack {
  uint64_t step = 0;        // to which all ps went back
  uint64_t steps_lost = 0;  // to be done again
  // For the user: "ps/1 lost its values: all go back 37 steps to the checkpoint of step 4963".
  std::string reason;
  bool to_snapshot = false;  // else a checkpoint
  uint64_t epoch = 0;        // of the values since then
};

// How a job started.
struct GoesOn {
  std::optional<Resumed> resumed;     // the checkpoint that was restored
  std::optional<WentBack> went_back;  // if ps had lost their values, or all use a snapshot
};

// A saved checkpoint.
struct SavedCheckpoint {
  uint64_t global_step = 0;
  uint64_t bytes = 0;
  double seconds = 0;  // from the request to the last fsync
  // How long training stalled. sync: the longest capture, plus the chief's wait until every ps had
  // acknowledged the cut. async: the hold, from the request for positions on, or the longest
  // capture if that took longer.
  double stall_seconds = 0;
};

// A snapshot that every ps keeps.
struct TakenSnapshot {
  uint64_t global_step = 0;
  uint64_t bytes = 0;
  double stall_seconds = 0;  // as in SavedCheckpoint
};

// Keys of the manifest's `extra`.
inline constexpr char kModelKey[] = "model";
inline constexpr char kSettingsKey[] = "settings";
inline constexpr char kEpochKey[] = "epoch";
inline constexpr char kEpochsKey[] = "epochs";             // their number, if the job has `epochs`
inline constexpr char kSignatureKey[] = "data_signature";  // see data/data_signature.h
// The names of the classes, for dtf 0.1.0; see saved_signature.h.
inline constexpr char kClassesKey[] = "classes";

// Returns the optimizer's text in a manifest: its name, and the options that add slots.
std::string optimizerText(const cluster::OptimizerSpec& optimizer);

// Returns the cut of a checkpoint.
// Errors: kBadData if the manifest has an invalid epoch.
checkpoint::CutName cutOf(const checkpoint::Manifest& manifest);

// Whether the training threads work during a save.
enum class Motion { kTraining, kAtRest };

// Owns: the view of the checkpoint folder, if the job keeps checkpoints.
// Borrows: the file system, the clock and the client.
// Threads: one at a time; callOffCuts() and interruptCuts() from any.
// Blocks: until every ps has written or read, or a deadline of the client passes.
// Errors: kCannotWrite and kBadData for the files; as CheckpointClient. After an error the caller
// may save again.
class Checkpointer {
 public:
  Checkpointer(FileSystem& file_system, const Clock& clock, checkpoint::CheckpointClient& client,
               const arena::ModelDeclaration& declaration, CheckpointerOptions options);

  // Called when the chief starts. Returns nullopt if the ps hold values now: from the newest whole
  // checkpoint, from a snapshot, or from an earlier process of the chief. Otherwise the job starts
  // anew; returns the epoch for its initial values.
  // Errors: kBadConfig, with the difference, if the checkpoint is of another job or model;
  // kBadConfig if the job must start anew but the ps hold values, or if a ps doesn't see the
  // chief's files. kBadData, with the reasons, if checkpoints exist but none can be used, or if ps
  // have lost their values and there is no checkpoint.
  std::optional<uint64_t> restore();

  // Called once the ps hold values and before this chief trains. Saves these values unless there is
  // a checkpoint, so that recovery always finds one; the next checkpoint replaces it. A job without
  // checkpoints takes a snapshot instead. A failure to write is logged.
  // Errors: kUnavailable, kDeadline if a ps is lost meanwhile.
  void saveInitial();
  // Waits until all replicas are whole, if the job has replicas and no checkpoint.
  void awaitFirstReplicas();

  // Calls restore(), saveInitial() and awaitFirstReplicas(), and starts over if a ps is lost
  // meanwhile. Call it until it returns nullopt: then all ps hold values of one epoch. The last try
  // skips the initial checkpoint.
  std::optional<uint64_t> start();

  // Called after a ps was restarted. Fills it from its replica, or takes all ps back to the newest
  // cut that every ps can load, a snapshot or a checkpoint. Skips a damaged snapshot. Returns
  // nullopt if no ps went back. `step`: the last known global step.
  // Errors: kBadData if a ps has lost its values and no copy exists; kUnavailable, kDeadline if
  // another ps was lost meanwhile: try again.
  std::optional<WentBack> recover(uint64_t step);

  // Returns how the job started; valid after restore().
  const GoesOn& goesOn() const { return goes_on_; }

  // sync: announces a cut at `step` to every ps; the next save() or snapshot() takes it. All have
  // acknowledged it on return.
  // Blocks: for a round trip, which counts as a stall.
  void startCut(uint64_t step);

  // Saves a checkpoint. Returns nullopt if the last checkpoint has the same cut. Only for a job
  // that keeps checkpoints (DTF_CHECK).
  std::optional<SavedCheckpoint> save(Motion motion);

  // Makes every ps keep its shard of one cut in memory. Returns nullopt if the last snapshot has
  // the same cut. Only for a job with snapshots (DTF_CHECK).
  std::optional<TakenSnapshot> snapshot(Motion motion);

  // Makes a save() that waits for its cut fail soon, and later ones too; a captured cut is still
  // written. Callable from any thread.
  void callOffCuts() { client_.callOffCuts(); }
  // As callOffCuts(), but later saves work again.
  void interruptCuts() { client_.interruptCuts(); }

  std::optional<uint64_t> lastStep() const { return last_step_; }  // saved or restored

 private:
  // A cut over all ps.
  struct Cut {
    CutPosition position;
    uint64_t global_step = 0;
    Duration held_up{};  // SavedCheckpoint::stall_seconds without the capture
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
  replication::RecoveryDecision decide(const checkpoint::Latest& latest, uint64_t step,
                                       bool with_snapshots = true);
  replication::RecoveryDecision decideAndGoBack(const checkpoint::Latest& latest, uint64_t step);
  bool goBack(const checkpoint::Latest& latest, const replication::RecoveryDecision& decision);
  void refill(const replication::RecoveryDecision& decision);
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
  const arena::ModelDeclaration declaration_;
  const CheckpointerOptions options_;
  std::optional<checkpoint::StayingFiles> staying_;     // if the ps keep their shards
  std::optional<checkpoint::CheckpointFolder> folder_;  // if the job keeps checkpoints
  const TimePoint started_;
  double run_seconds_before_ = 0;      // of earlier processes
  std::optional<Cut> cut_;             // from startCut(); its step is not confirmed
  std::optional<uint64_t> last_step_;  // of the last checkpoint
  std::optional<checkpoint::CutName> common_snapshot_;  // the newest that every ps keeps
  bool prepared_ = false;                               // leftovers of earlier chiefs are removed
  bool shared_ = false;                                 // all ps see the chief's files
  uint64_t named_ = 0;                                  // see replication::ChiefState
  uint64_t begun_ = 0;                                  // the last epoch that this chief began
  uint64_t epoch_ = 0;                                  // of the values; 0: not known yet
  bool broken_ = false;                                 // a connection failed: call held() first
  bool continued_ = false;  // with the values of an earlier process of the chief
  GoesOn goes_on_;
};

}  // namespace dtf::train
