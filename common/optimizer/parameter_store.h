#pragma once

// One shard's values: parameters, optimizer slots, versions. It handles neither workers nor the
// timing of updates.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/arena/gradient_layout.h"
#include "common/arena/model_declaration.h"
#include "common/arena/parameter_version.h"
#include "common/arena/row_history.h"
#include "common/optimizer/device_arrays.h"
#include "common/optimizer/moving_average.h"
#include "common/optimizer/optimizer.h"
#include "common/optimizer/slice_norms.h"
#include "common/optimizer/sparse_mean.h"

namespace dtf::optimizer {

// Owners of received parameters, and of the parameters before them. Thread-safe to release.
struct RestoredOwners {
  std::shared_ptr<const void> values;
  std::shared_ptr<const void> before;
};

// An update, a copy of the slots for a checkpoint, or a mean. Its parts may run on any threads;
// then the loop commits it, or takes its result.
// Owns (shares): everything it reads and writes, so it may outlive its store.
// Threads: measure() and run() are thread-safe for disjoint ranges.
// Blocks: computes.
class UpdateJob {
 public:
  uint64_t elements() const { return elements_; }
  // Whether all of [0, elements()) must be measured, once, before any of it is run (lars, lamb).
  bool needsMeasuring() const { return norms_ != nullptr; }
  void measure(uint64_t begin, uint64_t end);
  // Runs elements [begin, end). All of [0, elements()) must have run, once, before commit. Split at
  // multiples of 16 (a cache line); the result doesn't depend on the split.
  void run(uint64_t begin, uint64_t end);
  // Runs both passes in the calling thread.
  void runAll();
  // Returns the slots that a finished copy has made.
  std::vector<Buffer> takeCopies();
  // Returns the mean that a finished job has made.
  arena::Gradient takeMean();

 private:
  friend class ParameterStore;
  UpdateArrays arrays() const;
  void update(uint64_t begin, uint64_t end);
  void updateDense(uint64_t begin, uint64_t end);
  void readSlots();
  void optimize(uint64_t begin, uint64_t end);

  uint64_t elements_ = 0;
  UpdateConstants constants_;
  std::shared_ptr<const arena::ParameterVersion> source_;
  std::shared_ptr<arena::ParameterVersion> target_;
  std::shared_ptr<std::array<Buffer, kSlotsMax>> slots_;
  std::vector<arena::Gradient> gradients_;
  std::vector<const float*> gradient_data_;
  std::vector<uint32_t> weights_;  // of each gradient
  std::shared_ptr<const arena::GradientLayout> layout_;
  std::vector<std::vector<arena::RowsView>> rows_;  // by sparse slice, then by gradient
  std::vector<Buffer> copies_;            // of a copy: one for each slot; empty in an update
  std::shared_ptr<DeviceArrays> device_;  // of a copy: where the slots are, if not in slots_
  std::shared_ptr<arena::ParameterVersion> mean_;  // of a mean; null in an update
  std::shared_ptr<SparseMean> sparse_mean_;        // in its place, of a shard with sparse variables
  std::optional<arena::MissingRows> missing_;      // of target_; nullopt: all is to be written
  std::unique_ptr<SliceNorms> norms_;              // where the optimizer needs them
  std::shared_ptr<const std::vector<MovingRange>> moving_;  // that the optimizer leaves alone
  std::atomic<uint64_t> elements_measured_{0};
  std::atomic<uint64_t> elements_done_{0};
};

// An update of so many bytes takes a core some 0.2 ms. Two wake-ups take as much, and on a host of
// two cores the threads that wake run beside two that poll.
inline constexpr uint64_t kInPlaceBytesMax = 1 << 20;

// A runner of update jobs: psd runs them on compute threads, a worker without a ps on the threads
// of its step; tests and small shards run them in place.
// Threads: start() and `done` are called on the loop thread (of a shard without a loop: by one
// caller at a time).
class UpdateRunner {
 public:
  virtual ~UpdateRunner() = default;
  // Shards of at most this many bytes are updated in place, on the loop, without start(): handing
  // over costs more.
  virtual uint64_t inPlaceBytesMax() const { return kInPlaceBytesMax; }
  // Measures all parts of `job` if it needs that, runs them, then calls `done` on the loop thread:
  // from start() itself, or later.
  virtual void start(std::shared_ptr<UpdateJob> job, std::function<void()> done) = 0;
};

// Runs the job at once, in the calling thread.
class InlineUpdateRunner final : public UpdateRunner {
 public:
  void start(std::shared_ptr<UpdateJob> job, std::function<void()> done) override;
};

// Owns: the versions and slots of one shard; on a device it shares them.
// Threads: loop-thread only (jobs and versions travel).
// Blocks: never; with arrays on a device, while they are copied.
// Errors: kBadConfig for initial values of the wrong size, kBadData for restored ones; the device's
// errors. After a failed change on the device, reads of its arrays throw kUnavailable until they
// are restored.
class ParameterStore {
 public:
  // `slices`: the variables, each of them whole, for an optimizer that needs their norms. `moving`:
  // by begin, the ranges that the optimizer leaves alone. `sparse`: the slices with gradients by
  // rows. `device`: keeps the arrays; null: they are here. A device supports neither `sparse` nor
  // an optimizer that needs norms.
  ParameterStore(const cluster::OptimizerSpec& optimizer, uint64_t elements,
                 std::vector<arena::Slice> slices = {}, std::vector<MovingRange> moving = {},
                 std::vector<arena::SparseSlice> sparse = {},
                 std::shared_ptr<DeviceArrays> device = nullptr);

  uint64_t elements() const { return elements_; }
  bool initialised() const { return current_ != nullptr; }
  void initialise(std::span<const float> values);  // version 0

  // The state for a checkpoint, beside current(). Slots are changed in place while an update runs,
  // so read them (and copy what must last) only when not updating(). Slots on a device are
  // available as copies only.
  const cluster::OptimizerSpec& optimizer() const { return optimizer_; }
  bool updating() const { return running_ != nullptr; }
  uint32_t slotCount() const { return optimizer::slotCount(optimizer_); }
  std::string slotName(uint32_t slot) const { return optimizer::slotName(optimizer_, slot); }
  std::span<const float> slot(uint32_t slot) const;
  // Returns a copy of the moving averages; null if none are kept. Precondition: not updating().
  std::shared_ptr<const arena::ParameterVersion> copyAverages();
  const OptimizerClock::State& clockState() const { return optimizer_clock_.state(); }

  // Continues from saved values, in place of initialise(), or later when not updating(). `slots`:
  // slotCount() arrays, in the order of slot(). Every array has elements() values, padding (0, or a
  // slot's initial value) included. `before`: becomes previous(); nullopt: there is none. `owners`
  // keep `values` and `before` where they are while in use, and may be released by any thread;
  // null: these are copied. The slots are copied.
  void restore(std::span<const float> values, std::span<const std::span<const float>> slots,
               const OptimizerClock::State& clock, uint64_t version,
               std::optional<std::span<const float>> before = std::nullopt,
               const RestoredOwners& owners = {});

  bool isOnDevice() const { return device_ != nullptr; }

  // The newest parameters; not null once initialised. With arrays on a device, their elements are
  // undefined until readable() is called.
  const std::shared_ptr<const arena::ParameterVersion>& current() const { return current_; }
  // Returns current() with its elements, copied from the device if need be.
  const std::shared_ptr<const arena::ParameterVersion>& readable();
  uint64_t version() const { return current_->version(); }
  // The parameters before, until dropPrevious(); null when there are none, as on a device.
  const std::shared_ptr<const arena::ParameterVersion>& previous() const { return previous_; }
  void dropPrevious() { previous_ = nullptr; }

  const arena::GradientLayout& gradientLayout() const { return *gradient_layout_; }

  // Starts an update with the mean of `gradients`: at least one, all without a fault in
  // gradientLayout(). One at a time.
  std::shared_ptr<UpdateJob> prepareApply(std::vector<arena::Gradient> gradients);
  // Publishes the finished job's arena as current().
  void commit(const std::shared_ptr<UpdateJob>& job);

  // Returns a job that copies all slots; there must be some. While it runs, no update may; the
  // slots may be read.
  std::shared_ptr<UpdateJob> prepareCopy() const;

  // All values after the last update, which may have run and wait for its commit. Nothing is
  // copied: no update may run while the arenas are read.
  struct Image {
    uint64_t version = 0;
    OptimizerClock::State clock;
    // Parameters, then each slot, then, if they are still there, the parameters before.
    std::vector<std::span<const float>> arenas;
    std::shared_ptr<const void> owner;
  };
  Image newest() const;

  // Returns a job that computes the mean of `gradients` as an update with them does.
  std::shared_ptr<UpdateJob> prepareMean(std::vector<arena::Gradient> gradients);

  // Returns a copy of a dense gradient that its worker may soon overwrite.
  arena::Gradient copyOf(const arena::Gradient& gradient);

  // Prepares, runs and commits an update in place. With a device it uses the gradient that lies
  // there; `gradients` has one, which isn't read.
  void apply(std::vector<arena::Gradient> gradients);

  // Keeps the parameters, from the next update on, in memory that up to `readers` other processes
  // can read.
  void shareParameters(uint32_t readers) { pool_.share(readers); }

  uint64_t arenasAllocated() const { return pool_.allocated(); }

 private:
  std::shared_ptr<UpdateJob> jobOf(std::vector<arena::Gradient> gradients) const;
  void initialiseDevice(std::span<const float> values);
  void writeToDevice(std::span<const float> values, std::span<const std::span<const float>> slots);
  void updateOnDevice(const std::vector<arena::Gradient>& gradients);
  void throwIfTorn() const;
  std::shared_ptr<SparseMean> unusedMean();

  const cluster::OptimizerSpec optimizer_;
  const uint64_t elements_;
  const std::vector<arena::Slice> slices_;
  const std::shared_ptr<const std::vector<MovingRange>> moving_;        // shared with jobs
  const std::shared_ptr<const arena::GradientLayout> gradient_layout_;  // likewise
  const std::shared_ptr<DeviceArrays> device_;                          // null: the arrays are here
  arena::VersionPool pool_;
  std::optional<arena::RowHistory> history_;  // if updates leave rows as they are
  std::shared_ptr<SparseMean> sparse_mean_;   // of the last job, to be used again
  OptimizerClock optimizer_clock_;
  std::shared_ptr<std::array<Buffer, kSlotsMax>> slots_;
  std::shared_ptr<const arena::ParameterVersion> current_;
  std::shared_ptr<const arena::ParameterVersion> previous_;
  std::shared_ptr<UpdateJob> running_;
  std::shared_ptr<arena::ParameterVersion>
      unread_;            // current_, while its elements are only on the device
  bool is_torn_ = false;  // a change on the device failed: its arrays are of no version
};

// Returns the store of one ps of a job.
std::unique_ptr<ParameterStore> makeStore(const arena::ModelDeclaration& declaration,
                                          uint32_t ps_task,
                                          std::shared_ptr<DeviceArrays> device = nullptr);

}  // namespace dtf::optimizer
