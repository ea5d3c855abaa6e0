#include "daemons/psd/checkpoint_service.h"

#include <fmt/format.h>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/net/error_bridge.h"
#include "common/wire/checkpoint_codec.h"
#include "daemons/psd/shard_files.h"

namespace dtf::psd {

namespace {

constexpr size_t kNameMax = 128;

// A folder's name from the network: never a path.
std::string folderName(capnp::Text::Reader reader) {
  const std::string name(reader.begin(), reader.size());
  const bool plain = name.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                         "0123456789._-") == std::string::npos;
  if (!plain || name.empty() || name.size() > kNameMax || name[0] == '.')
    net::throwAsKj(Error(ErrorCode::kBadData, "'" + name + "' is no name of a checkpoint folder"));
  return name;
}

// What it posts to other loops takes its values along, for the session may be gone before that runs.
class CheckpointSession final : public schema::PsCheckpoint::Server {
 public:
  CheckpointSession(ShardHost& host, const CheckpointOptions& options, Incarnation chief)
      : host_(host), options_(options), chief_(chief) {}

  kj::Promise<void> position(PositionContext context) override {
    const bool hold = context.getParams().getHold();
    return host_
        .askNow<CutPosition>(
            [chief = chief_, hold](ps::Shard& shard) { return shard.position(chief, hold); })
        .then([context](const CutPosition& position) mutable {
          wire::encodePosition(
              position, context.getResults().initPosition(static_cast<uint32_t>(position.size())));
        });
  }

  kj::Promise<void> cut(CutContext context) override {
    CutPosition position = wire::decodePosition(context.getParams().getPosition());
    return host_
        .ask<ps::CutResult>([chief = chief_, position, epoch = context.getParams().getEpoch()](
                                ps::Shard& shard, ShardHost::Reply<ps::CutResult> reply) {
          shard.cutAt(chief, epoch, position,
                      [reply = std::move(reply)](const ps::CutAnswer& answer) {
                        if (const Error* error = std::get_if<Error>(&answer)) return reply(*error);
                        reply(std::get<ps::CutResult>(answer));
                      });
        })
        .then([context](const ps::CutResult& result) mutable {
          context.getResults().setCaptured(result.outcome == ps::CutOutcome::kCaptured);
          context.getResults().setVersion(result.version);
        });
  }

  kj::Promise<void> releaseHold(ReleaseHoldContext) override {
    return host_
        .askNow<bool>([chief = chief_](ps::Shard& shard) {
          shard.releaseHold(chief);
          return true;
        })
        .ignoreResult();
  }

  kj::Promise<void> save(SaveContext context) override {
    const std::filesystem::path folder =
        options_.folder / folderName(context.getParams().getFolder());
    return host_
        .askNow<ps::Shard::Captured>(
            [chief = chief_,
             position = wire::decodePosition(context.getParams().getPosition())](ps::Shard& shard) {
              ps::Shard::Captured captured = shard.captured(chief, position);
              shard.releaseCapture();
              return captured;
            })
        .then([this, folder](ps::Shard::Captured captured) {
          return host_
              .onDisk<checkpoint::SavedShard>([options = options_, folder, captured] {
                return saveShard(*options.file_system, folder, options.ps_task, captured);
              })
              .then([this, version = captured.capture->version](checkpoint::SavedShard saved) {
                return host_.askNow<checkpoint::SavedShard>([version, saved](ps::Shard& shard) {
                  shard.noteSaved(version);
                  return saved;
                });
              });
        })
        .then([context](const checkpoint::SavedShard& saved) mutable {
          wire::encodeSaved(saved, context.getResults().initSaved());
        });
  }

  kj::Promise<void> restore(RestoreContext context) override {
    const std::filesystem::path folder =
        options_.folder / folderName(context.getParams().getFolder());
    return host_
        .askNow<std::optional<ps::ModelDeclaration>>([chief = chief_](ps::Shard& shard) {
          shard.expectRestore(chief);
          return shard.declaration();
        })
        .then([this, folder](const std::optional<ps::ModelDeclaration>& declaration) {
          DTF_CHECK(declaration.has_value());  // expectRestore() saw to that
          using Restored = std::shared_ptr<ReadShard>;
          return host_.onDisk<Restored>([options = options_, folder, declaration] {
            return Restored(std::make_shared<ReadShard>(
                ReadShard{*declaration, restoreShard(*options.file_system, folder, options.ps_task,
                                                     *declaration, options.workers)}));
          });
        })
        .then([this](std::shared_ptr<ReadShard> restored) { restored_ = std::move(restored); });
  }

  kj::Promise<void> commitRestore(CommitRestoreContext context) override {
    if (restored_ == nullptr)
      net::throwAsKj(Error(ErrorCode::kBadConfig, "nothing was read to be restored"));
    const auto params = context.getParams();
    ps::RestoredShard& state = restored_->shard;
    state.epoch = params.getEpoch();
    state.origin = ps::EpochOrigin::kCheckpoint;
    state.cut = {params.getCutEpoch(), params.getCutStep()};
    if (!ps::validEpoch(state.cut.epoch))
      net::throwAsKj(Error(ErrorCode::kBadData,
                           fmt::format("{:#x} is no epoch of a checkpoint", state.cut.epoch)));
    return host_
        .askNow<bool>([chief = chief_,
                       restored = std::exchange(restored_, nullptr)](ps::Shard& shard) {
          if (shard.declaration() != restored->declaration)
            throw Error(ErrorCode::kBadConfig,
                        "another model was declared since the checkpoint was read: restore again");
          return shard.restore(chief, restored->shard);
        })
        .ignoreResult();
  }

 private:
  // What was read, and for which model.
  struct ReadShard {
    ps::ModelDeclaration declaration;
    ps::RestoredShard shard;
  };

  ShardHost& host_;
  const CheckpointOptions& options_;
  const Incarnation chief_;
  std::shared_ptr<ReadShard> restored_;  // aside
};

}  // namespace

schema::PsCheckpoint::Client makeCheckpoint(ShardHost& host, const CheckpointOptions& options,
                                            Incarnation chief) {
  return kj::heap<CheckpointSession>(host, options, chief);
}

}  // namespace dtf::psd
