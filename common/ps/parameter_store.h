#pragma once

// One shard's values: parameters, optimizer slots, versions. Knows nothing of workers or of when to
// update.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/ps/device_arrays.h"
#include "common/ps/gradient_layout.h"
#include "common/ps/moving_average.h"
#include "common/ps/optimizer.h"
#include "common/ps/parameter_client.h"
#include "common/ps/row_history.h"
#include "common/ps/slice_norms.h"
#include "common/ps/snapshot.h"
#include "common/ps/sparse_mean.h"

namespace dtf::ps {

// What keeps received parameters, and those before them. Thread-safe to release.
struct RestoredOwners {
  std::shared_ptr<const void> values;
  std::shared_ptr<const void> before;
};

// An update that has been decided on, a copy of the slots for a checkpoint, or a mean: its parts
// may run on any threads, then the loop commits it, or takes what it made.
// Owns (shares): everything it reads and writes, so it may outlive its store.
// Threads: measure() and run() are thread-safe for disjoint ranges.
// Blocks: computes.
class UpdateJob {
 public:
  uint64_t elements() const { return elements_; }
  // lars and lamb: all of [0, elements()) must have been measured, once, before any of it is run.
  bool needsMeasuring() const { return norms_ != nullptr; }
  void measure(uint64_t begin, uint64_t end);
  // Elements [begin, end). All of [0, elements()) must have run, once, before commit. Split at
  // multiples of 16 (a cache line); the result doesn't depend on the split.
  void run(uint64_t begin, uint64_t end);
  // Both passes, here.
  void runAll();
  // Of a copy that has run: the slots as they were.
  std::vector<Buffer> takeCopies();
  // Of a mean that has run.
  Gradient takeMean();

 private:
  friend class ParameterStore;
  UpdateArrays arrays() const;
  void update(uint64_t begin, uint64_t end);
  void updateDense(uint64_t begin, uint64_t end);
  void readSlots();
  void optimize(uint64_t begin, uint64_t end);

  uint64_t elements_ = 0;
  UpdateConstants constants_;
  std::shared_ptr<const Snapshot> source_;
  std::shared_ptr<Snapshot> target_;
  std::shared_ptr<std::array<Buffer, kSlotsMax>> slots_;
  std::vector<Gradient> gradients_;
  std::vector<const float*> gradient_data_;
  std::vector<uint32_t> weights_;  // of each gradient
  std::shared_ptr<const GradientLayout> layout_;
  std::vector<std::vector<RowsView>> rows_;  // by sparse slice, then by gradient
  std::vector<Buffer> copies_;               // of a copy: one for each slot; empty in an update
  std::shared_ptr<DeviceArrays> device_;     // of a copy: where the slots are, if not in slots_
  std::shared_ptr<Snapshot> mean_;           // of a mean; null in an update
  std::shared_ptr<SparseMean> sparse_mean_;  // in its place, of a shard with sparse variables
  std::optional<MissingRows> missing_;       // of target_; nullopt: all is to be written
  std::unique_ptr<SliceNorms> norms_;        // where the optimizer needs them
  std::shared_ptr<const std::vector<MovingRange>> moving_;  // that the optimizer leaves alone
  std::atomic<uint64_t> elements_measured_{0};
  std::atomic<uint64_t> elements_done_{0};
};

// Who runs an update. psd gives it to compute threads, a worker without a ps to those of its step;
// tests and small shards run it in place.
// Threads: start() is called on the loop thread (of a shard without a loop: by one caller at a
// time), and `done` must be.
class UpdateRunner {
 public:
  virtual ~UpdateRunner() = default;
  // Measures all parts of `job` where it needs that, then runs them, then calls `done` on the loop
  // thread: from start() itself, or later.
  virtual void start(std::shared_ptr<UpdateJob> job, std::function<void()> done) = 0;
};

// Runs the job at once, in the calling thread.
class InlineUpdateRunner final : public UpdateRunner {
 public:
  void start(std::shared_ptr<UpdateJob> job, std::function<void()> done) override;
};

// Shards of at most this many bytes are updated in place, on the loop, whatever the runner: handing
// over costs more.
inline constexpr uint64_t kInlineUpdateBytes = 64 << 10;

// Owns: snapshots and slots of one shard; on a device it shares them.
// Threads: loop-thread only (jobs and snapshots travel).
// Blocks: never; with arrays on a device while they are copied.
// Errors: kBadConfig for initial values of the wrong size, kBadData for restored ones; those of the
// device, and kUnavailable for all // that would read arrays there after a change of them has
// failed, until they are restored.
class ParameterStore {
 public:
  // `slices`: the variables, each of them whole, for an optimizer that needs their norms. `moving`:
  // by begin, what the optimizer leaves alone. `sparse`: of what gradients have rows. `device`:
  // where the arrays are, if not here; not with `slices`, of which it has no norms, nor with
  // `sparse`.
  ParameterStore(const cluster::OptimizerSpec& optimizer, uint64_t elements,
                 std::vector<Slice> slices = {}, std::vector<MovingRange> moving = {},
                 std::vector<SparseSlice> sparse = {},
                 std::shared_ptr<DeviceArrays> device = nullptr);

  uint64_t elements() const { return elements_; }
  bool initialised() const { return current_ != nullptr; }
  void initialise(std::span<const float> values);  // version 0

  // What a checkpoint keeps beside current(). Slots are changed in place while an update runs, so
  // read them (and copy what must last) in between: not while updating(). Those on a device have no
  // slot(), only copies.
  const cluster::OptimizerSpec& optimizer() const { return optimizer_; }
  bool updating() const { return running_ != nullptr; }
  uint32_t slotCount() const { return ps::slotCount(optimizer_); }
  std::string slotName(uint32_t slot) const { return ps::slotName(optimizer_, slot); }
  std::span<const float> slot(uint32_t slot) const;
  // A copy of the moving averages; null where the optimizer keeps none. Not while updating().
  std::shared_ptr<const Snapshot> copyAverages();
  const OptimizerClock::State& clockState() const { return optimizer_clock_.state(); }

  // Goes on from there, as if it had never stopped; in place of initialise(), or later, not while
  // updating(). `slots`: slotCount() of them, in the order of slot(). Every array has elements()
  // values, padding (0, or a slot's initial value) included.
  // `before`: what previous() is then; nullopt: there is none. `owners` keep `values` and `before`
  // where they are, for as long as they are in use, and may be released by any thread; null: these
  // are copied. The slots are copied.
  void restore(std::span<const float> values, std::span<const std::span<const float>> slots,
               const OptimizerClock::State& clock, uint64_t version,
               std::optional<std::span<const float>> before = std::nullopt,
               const RestoredOwners& owners = {});

  bool isOnDevice() const { return device_ != nullptr; }

  // Not null once initialised. Of arrays on a device its elements are undefined until readable() is
  // called.
  const std::shared_ptr<const Snapshot>& current() const { return current_; }
  // The same with its elements, which are brought from the device if need be.
  const std::shared_ptr<const Snapshot>& readable();
  uint64_t version() const { return current_->version(); }
  // The one before, until dropPrevious(); null when there is none, as on a device.
  const std::shared_ptr<const Snapshot>& previous() const { return previous_; }
  void dropPrevious() { previous_ = nullptr; }

  const GradientLayout& gradientLayout() const { return *gradient_layout_; }

  // Starts an update with the mean of `gradients`: 1..n, in which gradientLayout() finds no fault.
  // One at a time.
  std::shared_ptr<UpdateJob> prepareApply(std::vector<Gradient> gradients);
  // Publishes the finished job's arena as current().
  void commit(const std::shared_ptr<UpdateJob>& job);

  // A job that copies all slots; there must be some. While it runs no update may, and other readers
  // of the slots are welcome.
  std::shared_ptr<UpdateJob> prepareCopy() const;

  // All of it after the last update, which may have run and wait for its commit. Nothing is copied:
  // no update may run while the arenas are read.
  struct Image {
    uint64_t version = 0;
    OptimizerClock::State clock;
    // Parameters, then each slot, then, where they are there still, the parameters before.
    std::vector<std::span<const float>> arenas;
    std::shared_ptr<const void> owner;
  };
  Image newest() const;

  // A job that computes the mean of `gradients` as an update with them does.
  std::shared_ptr<UpdateJob> prepareMean(std::vector<Gradient> gradients);

  // prepareApply, run in place, commit. On a device: an update with the gradient that lies there,
  // and `gradients`, of which there is one, isn't read.
  void apply(std::vector<Gradient> gradients);

  // From the next update on the parameters are where other processes, so many at most, can be given
  // them to read.
  void shareParameters(uint32_t readers) { pool_.share(readers); }

  uint64_t arenasAllocated() const { return pool_.allocated(); }

 private:
  std::shared_ptr<UpdateJob> jobOf(std::vector<Gradient> gradients) const;
  void initialiseDevice(std::span<const float> values);
  void writeToDevice(std::span<const float> values, std::span<const std::span<const float>> slots);
  void updateOnDevice(const std::vector<Gradient>& gradients);
  void throwIfTorn() const;
  std::shared_ptr<SparseMean> unusedMean();

  const cluster::OptimizerSpec optimizer_;
  const uint64_t elements_;
  const std::vector<Slice> slices_;
  const std::shared_ptr<const std::vector<MovingRange>> moving_;  // shared with jobs
  const std::shared_ptr<const GradientLayout> gradient_layout_;   // likewise
  const std::shared_ptr<DeviceArrays> device_;                    // null: the arrays are here
  SnapshotPool pool_;
  std::optional<RowHistory> history_;        // where updates leave rows as they are
  std::shared_ptr<SparseMean> sparse_mean_;  // of the last job, to be used again
  OptimizerClock optimizer_clock_;
  std::shared_ptr<std::array<Buffer, kSlotsMax>> slots_;
  std::shared_ptr<const Snapshot> current_;
  std::shared_ptr<const Snapshot> previous_;
  std::shared_ptr<UpdateJob> running_;
  std::shared_ptr<Snapshot> unread_;  // current_, as long as its elements are on the device alone
  bool is_torn_ = false;              // a change on the device failed: its arrays are of no version
};

// That of one ps of a job.
std::unique_ptr<ParameterStore> makeStore(const ModelDeclaration& declaration, uint32_t ps_task,
                                          std::shared_ptr<DeviceArrays> device = nullptr);

}  // namespace dtf::ps
