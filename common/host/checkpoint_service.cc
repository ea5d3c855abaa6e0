#include "common/host/checkpoint_service.h"

#include <fmt/format.h>

#include "common/base/check.h"
#include "common/base/checksum.h"
#include "common/base/failpoint.h"
#include "common/base/log.h"
#include "common/host/shard_capture.h"
#include "common/host/staying_service.h"
#include "common/host/travelling_shard.h"
#include "common/net/error_bridge.h"
#include "common/net/timer.h"
#include "common/wire/checkpoint_codec.h"

namespace dtf::host {

namespace {

constexpr Duration kLookEvery = std::chrono::milliseconds(100);
constexpr double kLookSecondsMax = 60;

std::string plainName(capnp::Text::Reader reader, const char* what = "a checkpoint folder") {
  return net::bridgeErrors([&] { return wire::decodeFileName(reader, what); });
}

// Decodes the name of a cut, and checks its epoch.
checkpoint::CutName cutName(schema::Held::Cut::Reader reader) {
  const checkpoint::CutName name = wire::decodeCut(reader);
  if (!replication::validEpoch(name.epoch))
    net::throwAsKj(Error(ErrorCode::kBadData, "the checkpoint's epoch is invalid"));
  return name;
}

checkpoint::SnapshotFolder snapshotFolder(const CheckpointOptions& options) {
  if (options.snapshots.folder.empty())
    throw Error(
        ErrorCode::kCannotWrite,
        fmt::format("{} was started without `durability: snapshot`", options.shard().host.name()));
  return {*options.file_system, options.snapshots, options.ps_task};
}

// The chief's session for checkpoints. Its requests to other loops contain copies of all they need,
// because the session may end before they run.
class CheckpointSession final : public schema::PsCheckpoint::Server {
 public:
  CheckpointSession(ShardHost& host, const CheckpointOptions& options, Incarnation chief)
      : host_(host), options_(options), chief_(chief) {}

  kj::Promise<void> position(PositionContext context) override {
    const bool hold = context.getParams().getHold();
    return host_
        .askNow<CutPosition>([chief = chief_, hold](shard::Shard& shard) {
          return shard.cuts().position(chief, hold);
        })
        .then([context](const CutPosition& position) mutable {
          wire::encodePosition(
              position, context.getResults().initPosition(static_cast<uint32_t>(position.size())));
        });
  }

  kj::Promise<void> cut(CutContext context) override {
    CutPosition position = wire::decodePosition(context.getParams().getPosition());
    return host_
        .ask<replication::CutResult>(
            [chief = chief_, position, epoch = context.getParams().getEpoch()](
                shard::Shard& shard, ShardHost::Reply<replication::CutResult> reply) {
              shard.cuts().cutAt(chief, epoch, position,
                                 [reply = std::move(reply)](const replication::CutAnswer& answer) {
                                   if (const Error* error = std::get_if<Error>(&answer))
                                     return reply(*error);
                                   reply(std::get<replication::CutResult>(answer));
                                 });
            })
        .then([context](const replication::CutResult& result) mutable {
          context.getResults().setCaptured(result.outcome == replication::CutOutcome::kCaptured);
          context.getResults().setVersion(result.version);
        });
  }

  kj::Promise<void> releaseHold(ReleaseHoldContext) override {
    return host_
        .askNow<bool>([chief = chief_](shard::Shard& shard) {
          shard.cuts().releaseHold(chief);
          return true;
        })
        .ignoreResult();
  }

  kj::Promise<void> save(SaveContext context) override {
    const std::filesystem::path folder =
        options_.folder / plainName(context.getParams().getFolder());
    return saveCapture(host_, chief_, wire::decodePosition(context.getParams().getPosition()),
                       [options = options_, folder](const shard::CapturedShard& captured) {
                         return saveShard(*options.file_system, folder, options.shard(), captured);
                       })
        .then([context](const checkpoint::SavedShard& saved) mutable {
          wire::encodeSaved(saved, context.getResults().initSaved());
        });
  }

  kj::Promise<void> restore(RestoreContext context) override {
    const std::filesystem::path folder =
        options_.folder / plainName(context.getParams().getFolder());
    return readAside([options = options_, folder](const arena::ModelDeclaration& declaration) {
      return restoreShard(*options.file_system, folder, options.ps_task, declaration,
                          options.workers);
    });
  }

  kj::Promise<void> snapshot(SnapshotContext context) override {
    const auto params = context.getParams();
    const checkpoint::CutName name = cutName(params.getCut());
    std::optional<checkpoint::CutName> keep;
    if (params.getKeeps()) keep = cutName(params.getKeep());
    if (keep == name)
      net::throwAsKj(Error(ErrorCode::kBadData,
                           "a snapshot can't replace the snapshot to keep: both have one name"));
    return takeCapture(host_, chief_, wire::decodePosition(params.getPosition()))
        .then([this, name, keep](shard::CapturedShard captured) {
          return host_.onDisk<checkpoint::KeptSnapshot>([options = options_, name, keep, captured] {
            checkpoint::SnapshotFolder folder = snapshotFolder(options);
            return saveSnapshot(folder, name, keep, options, captured);
          });
        })
        .then([context](const checkpoint::KeptSnapshot& kept) mutable {
          context.getResults().setBytes(kept.bytes);
          context.getResults().setStallSeconds(kept.stall_seconds);
        });
  }

  kj::Promise<void> restoreSnapshot(RestoreSnapshotContext context) override {
    const checkpoint::CutName name = cutName(context.getParams().getCut());
    return readAside([options = options_, name](const arena::ModelDeclaration& declaration) {
      checkpoint::SnapshotFolder folder = snapshotFolder(options);
      try {
        return dtf::host::restoreSnapshot(folder, name, options, declaration);
      } catch (const Error& error) {
        folder.remove(name);  // no later attempt could read it
        throw Error(ErrorCode::kBadData,
                    fmt::format("{}: {}", options.shard().host.name(), error.message()));
      }
    });
  }

  kj::Promise<void> forgetSnapshots(ForgetSnapshotsContext) override {
    return host_
        .askNow<bool>([chief = chief_](shard::Shard& shard) {
          shard.workers().checkDeclared(kChief.index,
                                        chief);  // rejects a replaced chief
          return true;
        })
        .then([this](bool) {
          return host_.onDisk<bool>([options = options_] {
            snapshotFolder(options).removeAllBut(std::nullopt);
            return true;
          });
        })
        .ignoreResult();
  }

  kj::Promise<void> see(SeeContext context) override {
    const double seconds = context.getParams().getSeconds();
    if (!(seconds >= 0 && seconds <= kLookSecondsMax))
      net::throwAsKj(
          Error(ErrorCode::kBadData, fmt::format("a search of {} s is not allowed", seconds)));
    const TimePoint until = host_.control().clock().now() + fromSeconds(seconds);
    return look(options_.folder / plainName(context.getParams().getFile(), "a file"), until)
        .then([context](bool seen) mutable { context.getResults().setSeen(seen); });
  }

  kj::Promise<void> staying(StayingContext context) override {
    context.getResults().setStaying(makeStaying(host_, options_, chief_));
    return kj::READY_NOW;
  }

  kj::Promise<void> stage(StageContext context) override {
    staged_ = nullptr;
    return takeCapture(host_, chief_, wire::decodePosition(context.getParams().getPosition()))
        .then([this](shard::CapturedShard captured) {
          using Staged = std::shared_ptr<const StagedShard>;
          return host_.onDisk<Staged>([shard = options_.shard(), captured] {
            return Staged(std::make_shared<const StagedShard>(shard, captured));
          });
        })
        .then([this, context](std::shared_ptr<const StagedShard> staged) mutable {
          wire::encodeSaved(staged->saved(), context.getResults().initSaved());
          staged_ = std::move(staged);
          DTF_FAILPOINT("gather.after_stage");
        });
  }

  kj::Promise<void> fetch(FetchContext context) override {
    const uint64_t offset = context.getParams().getOffset();
    const uint32_t bytes = context.getParams().getBytes();
    if (staged_ == nullptr)
      net::throwAsKj(Error(ErrorCode::kBadConfig, "no shard is ready to be fetched"));
    const uint64_t size = staged_->saved().file.bytes;
    if (bytes > checkpoint::kPieceBytesMax || offset > size || bytes > size - offset)
      net::throwAsKj(Error(ErrorCode::kBadConfig,
                           fmt::format("a request for {} bytes at {} of {}; a piece has at most "
                                       "{}",
                                       bytes, offset, size, checkpoint::kPieceBytesMax)));
    DTF_FAILPOINT("gather.before_piece");
    auto data = context.getResults().initData(bytes);
    const std::span<char> out(reinterpret_cast<char*>(data.begin()), data.size());
    staged_->read(offset, out);
    context.getResults().setChecksum(checksumOf({out.data(), out.size()}));
    return kj::READY_NOW;
  }

  kj::Promise<void> release(ReleaseContext context) override {
    const auto staged = std::exchange(staged_, nullptr);
    if (staged == nullptr || !context.getParams().getSaved()) return kj::READY_NOW;
    return host_
        .askNow<bool>([version = staged->version()](shard::Shard& shard) {
          shard.cuts().noteSaved(version);
          return true;
        })
        .ignoreResult();
  }

  kj::Promise<void> expect(ExpectContext context) override {
    brought_ = nullptr;
    auto head = net::bridgeErrors([&] { return wire::decodeCutHead(context.getParams()); });
    return declared()
        .then([this, head = std::move(head)](arena::ModelDeclaration declaration) {
          using Brought = std::shared_ptr<BroughtShard>;
          return host_.onDisk<Brought>([options = options_, head, declaration] {
            return std::make_shared<BroughtShard>(options.shard(), declaration, options.workers,
                                                  head);
          });
        })
        .then([this](std::shared_ptr<BroughtShard> brought) { brought_ = std::move(brought); });
  }

  kj::Promise<void> bring(BringContext context) override {
    const auto params = context.getParams();
    const auto data = params.getValues();
    const std::string_view values(reinterpret_cast<const char*>(data.begin()), data.size());
    if (brought_ == nullptr)
      net::throwAsKj(
          Error(ErrorCode::kBadConfig, "no expect() came before the values of a checkpoint"));
    if (checksumOf(values) != params.getChecksum())
      net::throwAsKj(Error(ErrorCode::kUnavailable,
                           fmt::format("values of {} were damaged on the way: their checksum is "
                                       "{}, but the chief reports {}",
                                       options_.shard().host.name(), hexOf(checksumOf(values)),
                                       hexOf(params.getChecksum()))));
    DTF_FAILPOINT("gather.before_take");
    net::bridgeErrors([&] { brought_->take({params.getArena(), params.getOffset()}, values); });
    return kj::READY_NOW;
  }

  kj::Promise<void> commitRestore(CommitRestoreContext context) override {
    if (brought_ != nullptr) net::bridgeErrors([this] { finishBrought(); });
    if (restored_ == nullptr)
      net::throwAsKj(Error(ErrorCode::kBadConfig, "no saved values were read before the restore"));
    const auto params = context.getParams();
    shard::RestoredShard& state = restored_->shard;
    state.epoch = params.getEpoch();
    state.origin_cut = {params.getCutEpoch(), params.getCutStep()};
    if (!replication::validEpoch(state.origin_cut.epoch))
      net::throwAsKj(
          Error(ErrorCode::kBadData,
                fmt::format("a checkpoint has the invalid epoch {:#x}", state.origin_cut.epoch)));
    return host_
        .askNow<bool>([chief = chief_,
                       restored = std::exchange(restored_, nullptr)](shard::Shard& shard) {
          if (shard.declaration() != restored->declaration)
            throw Error(ErrorCode::kBadConfig,
                        "another model was declared since the checkpoint was read: restore again");
          const bool begins = shard.recovery().restore(chief, restored->shard);
          DTF_FAILPOINT("recovery.ps_has_committed");
          return begins;
        })
        .ignoreResult();
  }

  kj::Promise<void> refill(RefillContext context) override {
    return askAndWait(&shard::ShardRecovery::refill, context.getParams().getEpoch());
  }

  kj::Promise<void> awaitReplica(AwaitReplicaContext context) override {
    return askAndWait(&shard::ShardRecovery::awaitReplica, context.getParams().getEpoch());
  }

 private:
  using Question = void (shard::ShardRecovery::*)(Incarnation chief, uint64_t epoch,
                                                  replication::WaitCallback);

  kj::Promise<void> askAndWait(Question question, uint64_t epoch) {
    return host_
        .ask<bool>(
            [question, chief = chief_, epoch](shard::Shard& shard, ShardHost::Reply<bool> reply) {
              (shard.recovery().*question)(
                  chief, epoch, [reply = std::move(reply)](const replication::WaitAnswer& answer) {
                    if (const Error* error = std::get_if<Error>(&answer)) return reply(*error);
                    reply(true);
                  });
            })
        .ignoreResult();
  }

  // The values of a checkpoint, and the model for which they were read.
  struct ReadShard {
    arena::ModelDeclaration declaration;
    shard::RestoredShard shard;
  };

  // Returns the declared model, after checking that this chief may restore its values.
  kj::Promise<arena::ModelDeclaration> declared() {
    return host_.askNow<arena::ModelDeclaration>([chief = chief_](shard::Shard& shard) {
      shard.recovery().expectRestore(chief);
      DTF_CHECK(shard.declaration().has_value());  // expectRestore() saw to that
      return *shard.declaration();
    });
  }

  void finishBrought() {
    const auto brought = std::exchange(brought_, nullptr);
    restored_ = std::make_shared<ReadShard>(ReadShard{brought->declaration(), brought->finish()});
  }

  kj::Promise<bool> look(std::filesystem::path file, TimePoint until) {
    return host_
        .onDisk<bool>(
            [file_system = options_.file_system, file] { return file_system->exists(file); })
        .then([this, file, until](bool seen) -> kj::Promise<bool> {
          net::Loop& control = host_.control();
          if (seen || control.clock().now() >= until) return seen;
          return control.timer().afterDelay(net::toKj(kLookEvery)).then([this, file, until] {
            return look(file, until);
          });
        });
  }

  // Runs `read` for the declared model on the disk loop. Its values wait for commitRestore().
  kj::Promise<void> readAside(
      std::function<shard::RestoredShard(const arena::ModelDeclaration& declaration)> read) {
    brought_ = nullptr;
    return declared()
        .then([this, read = std::move(read)](const arena::ModelDeclaration& declaration) mutable {
          using Restored = std::shared_ptr<ReadShard>;
          return host_.onDisk<Restored>([read = std::move(read), declaration] {
            return Restored(std::make_shared<ReadShard>(ReadShard{declaration, read(declaration)}));
          });
        })
        .then([this](std::shared_ptr<ReadShard> restored) { restored_ = std::move(restored); });
  }

  ShardHost& host_;
  const CheckpointOptions& options_;
  const Incarnation chief_;
  std::shared_ptr<ReadShard> restored_;        // for commitRestore()
  std::shared_ptr<BroughtShard> brought_;      // becomes restored_
  std::shared_ptr<const StagedShard> staged_;  // from stage() to release()
};

}  // namespace

std::vector<checkpoint::CutName> listSnapshots(const CheckpointOptions& options) {
  if (options.snapshots.folder.empty()) return {};
  try {
    return snapshotFolder(options).list();
  } catch (const Error& error) {
    log::warning("event=snapshots_not_read reason=\"{}\"", error.message());
    return {};
  }
}

void forgetSnapshots(const CheckpointOptions& options) {
  if (options.snapshots.folder.empty()) return;
  try {
    snapshotFolder(options).removeAll();
  } catch (const Error& error) {
    log::warning("event=snapshots_not_removed reason=\"{}\"", error.message());
  }
}

schema::PsCheckpoint::Client makeCheckpoint(ShardHost& host, const CheckpointOptions& options,
                                            Incarnation chief) {
  return kj::heap<CheckpointSession>(host, options, chief);
}

}  // namespace dtf::host
