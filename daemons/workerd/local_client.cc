// A worker with its own parameters: the shard of one ps in its memory. It has the same bits and
// checkpoints as one ps and one worker.

#include <utility>

#include "common/base/check.h"
#include "common/base/file_system.h"
#include "common/base/mutex.h"
#include "common/exchange/local_exchange_client.h"
#include "common/host/shard_files.h"
#include "common/train/pooled_updates.h"
#include "daemons/workerd/worker_client.h"

namespace dtf::workerd {

namespace {

constexpr uint32_t kOnlyShard = 0;

// The chief's checkpoints of the only shard.
// Borrows: the constructor's `cluster`.
class LocalCheckpoints final : public checkpoint::CheckpointClient {
 public:
  LocalCheckpoints(exchange::LocalCluster& cluster, Incarnation chief, std::filesystem::path folder)
      : cluster_(cluster), chief_(chief), folder_(std::move(folder)) {}

  std::vector<checkpoint::PsState> held() override {
    checkpoint::PsState state;
    cluster_.ask(kOnlyShard, [&state](shard::Shard& shard) { state = {shard.held()}; });
    return {state};
  }

  std::vector<CutPosition> positions(bool hold) override {
    CutPosition position;
    cluster_.ask(kOnlyShard,
                 [&](shard::Shard& shard) { position = shard.cuts().position(chief_, hold); });
    return {position};
  }

  void releaseHold() override {
    cluster_.ask(kOnlyShard, [this](shard::Shard& shard) { shard.cuts().releaseHold(chief_); });
  }

  void startCut(const CutPosition& position, uint64_t epoch) override {
    auto cut = std::make_shared<Cut>();
    {
      const MutexLock lock(cuts_->mutex);
      if (cuts_->called_off) throw calledOff();
      cuts_->last = cut;
    }
    // The callback must not use `this`: the shard keeps it, and may call it later.
    cluster_.ask(kOnlyShard, [&](shard::Shard& shard) {
      shard.cuts().cutAt(chief_, epoch, position,
                         [cuts = cuts_, cut](replication::CutAnswer answer) {
                           const MutexLock lock(cuts->mutex);
                           cut->answer = std::move(answer);
                           cuts->answered.notifyAll();
                         });
    });
  }

  std::optional<uint64_t> awaitCut() override {
    const MutexLock lock(cuts_->mutex);
    DTF_CHECK(cuts_->last != nullptr);
    const std::shared_ptr<Cut> cut = std::exchange(cuts_->last, nullptr);
    while (!cut->answer && !cuts_->called_off) cuts_->answered.wait(cuts_->mutex);
    if (!cut->answer) throw calledOff();
    if (const Error* error = std::get_if<Error>(&*cut->answer)) throw Error(*error);
    const auto& result = std::get<replication::CutResult>(*cut->answer);
    if (result.outcome != replication::CutOutcome::kCaptured) return std::nullopt;
    return result.version;
  }

  void callOffCuts() override {
    const MutexLock lock(cuts_->mutex);
    cuts_->called_off = true;
    cuts_->answered.notifyAll();
  }
  void interruptCuts() override {}  // a ps is never lost here

  std::vector<checkpoint::SavedShard> save(const std::string& folder,
                                           const CutPosition& position) override {
    std::optional<shard::CapturedShard> captured;
    cluster_.ask(kOnlyShard, [&](shard::Shard& shard) {
      captured = shard.cuts().captured(chief_, position);
      shard.cuts().releaseCapture();
    });
    checkpoint::SavedShard saved =
        host::saveShard(realFileSystem(), folder_ / folder, kOnlyShard, *captured);
    cluster_.ask(kOnlyShard, [&captured](shard::Shard& shard) {
      shard.cuts().noteSaved(captured->capture->version);
    });
    return {saved};
  }

  void restore(const checkpoint::GoingBack& target) override {
    std::optional<arena::ModelDeclaration> declaration;
    cluster_.ask(kOnlyShard, [&](shard::Shard& shard) { declaration = shard.declaration(); });
    DTF_CHECK(declaration.has_value() && !target.folder.empty());
    shard::RestoredShard state =
        host::restoreShard(realFileSystem(), folder_ / target.folder, kOnlyShard, *declaration, 1);
    state.epoch = target.epoch;
    state.origin_cut = {target.cut_epoch, target.cut_step};
    cluster_.ask(kOnlyShard, [&](shard::Shard& shard) { shard.recovery().restore(chief_, state); });
  }

  // There are no other processes: nothing is gathered or shared.
  checkpoint::ShardTransfer& transfer() override { never(); }
  checkpoint::StayingShards& staying() override { never(); }
  std::vector<bool> see(const std::string&) override { never(); }

  // No second process could find a snapshot: such a job is rejected.
  std::vector<checkpoint::KeptSnapshot> snapshot(
      const checkpoint::CutName&, const CutPosition&,
      const std::optional<checkpoint::CutName>&) override {
    never();
  }
  void forgetSnapshots() override { never(); }
  void refill(const std::vector<uint32_t>&, uint64_t) override { never(); }
  void awaitReplicas(uint64_t) override { never(); }

 private:
  struct Cut {
    std::optional<replication::CutAnswer> answer;
  };
  struct Cuts {
    Mutex mutex;
    CondVar answered;
    std::shared_ptr<Cut> last DTF_GUARDED_BY(mutex);  // the last started
    bool called_off DTF_GUARDED_BY(mutex) = false;
  };
  [[noreturn]] static void never() {
    DTF_CHECK_MSG(false, "one process keeps no snapshot or replica, and shares no disk");
  }
  static Error calledOff() {
    return {ErrorCode::kUnavailable, "the job ends: no further checkpoint will be taken"};
  }

  exchange::LocalCluster& cluster_;
  const Incarnation chief_;
  const std::filesystem::path folder_;
  const std::shared_ptr<Cuts> cuts_ = std::make_shared<Cuts>();
};

class LocalClient final : public WorkerClient {
 public:
  LocalClient(const cluster::TaskOptions& task, const Clock& clock, runtime::ComputePool& pool)
      : folder_(task.job.run_dir / "checkpoints"),
        updates_(pool),
        cluster_(1, 1, clock, fromSeconds(task.job.timeouts.finish_seconds), &updates_),
        client_(cluster_, kChief.index) {}

  exchange::ExchangeClient& parameters() override { return client_; }
  std::unique_ptr<checkpoint::CheckpointClient> checkpoints(double) override {
    return std::make_unique<LocalCheckpoints>(cluster_, client_.incarnation(), folder_);
  }
  void requestStop(WorkerStatus::Refused) override {
    cluster_.ask(kOnlyShard, [this](shard::Shard& shard) {
      shard.workers().requestStop(kChief.index, client_.incarnation());
    });
  }
  void pause() override {}  // there are no other processes
  std::set<uint32_t> toldToEnd() override { return {}; }
  void fail(const Error&, wire::FailureOf, Duration) override {}  // there are no other processes
  void endWith(const Error& error) override {
    cluster_.ask(kOnlyShard, [&error](shard::Shard& shard) { shard.failAll(error); });
  }
  void askHeartbeats(std::function<void()> answer) override { answer(); }

 private:
  const std::filesystem::path folder_;
  train::PooledUpdates updates_;
  exchange::LocalCluster cluster_;
  exchange::LocalExchangeClient client_;
};

}  // namespace

std::unique_ptr<WorkerClient> holdParameters(const cluster::TaskOptions& task, const Clock& clock,
                                             runtime::ComputePool& pool) {
  return std::make_unique<LocalClient>(task, clock, pool);
}

}  // namespace dtf::workerd
