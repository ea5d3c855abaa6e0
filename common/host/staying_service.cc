#include "common/host/staying_service.h"

#include <fmt/format.h>

#include <utility>

#include "common/base/checksum.h"
#include "common/base/failpoint.h"
#include "common/checkpoint/staying_shards.h"
#include "common/host/shard_capture.h"
#include "common/net/error_bridge.h"
#include "common/wire/checkpoint_codec.h"

namespace dtf::host {

namespace {

std::string nameOf(capnp::Text::Reader reader, const char* what = "a folder of shards") {
  return net::bridgeErrors([&] { return wire::decodeFileName(reader, what); });
}

checkpoint::SavedShard saveStaying(const CheckpointOptions& options, const std::string& name,
                                   const shard::CapturedShard& captured) {
  FileSystem& disk = *options.file_system;
  const std::filesystem::path folder =
      checkpoint::makeStaying(disk, checkpoint::stayingFolder(options.folder), name);
  checkpoint::SavedShard saved = saveShard(disk, folder, options.shard(), captured);
  disk.syncFolder(folder);
  DTF_FAILPOINT("stay.after_shard");
  return saved;
}

// The chief's session for shards that stay with their ps. Its requests to other loops contain
// copies of all they need, because the session may end before they run.
class StayingSession final : public schema::PsStaying::Server {
 public:
  StayingSession(ShardHost& host, const CheckpointOptions& options, Incarnation chief)
      : host_(host), options_(options), chief_(chief) {}

  kj::Promise<void> save(SaveContext context) override {
    const std::string name = nameOf(context.getParams().getName());
    return saveCapture(host_, chief_, wire::decodePosition(context.getParams().getPosition()),
                       [options = options_, name](const shard::CapturedShard& captured) {
                         return saveStaying(options, name, captured);
                       })
        .then([context](const checkpoint::SavedShard& saved) mutable {
          wire::encodeSaved(saved, context.getResults().initSaved());
        });
  }

  kj::Promise<void> find(FindContext context) override {
    using Found = std::vector<checkpoint::FoundShard>;
    const std::filesystem::path folder = folderOf(context.getParams().getName());
    auto wanted =
        net::bridgeErrors([&] { return wire::decodeWanted(context.getParams().getFiles()); });
    return host_
        .onDisk<Found>([disk = options_.file_system, folder, wanted = std::move(wanted)] {
          Found found;
          for (const checkpoint::ShardFile& file : wanted)
            found.push_back(checkpoint::findStaying(*disk, folder / file.file, file));
          return found;
        })
        .then([context](const Found& found) mutable {
          wire::encodeFound(found,
                            context.getResults().initFound(static_cast<uint32_t>(found.size())));
        });
  }

  kj::Promise<void> fetch(FetchContext context) override {
    const auto params = context.getParams();
    const std::filesystem::path path =
        folderOf(params.getName()) / nameOf(params.getFile(), "a shard's file");
    const uint64_t offset = params.getOffset();
    const uint32_t bytes = params.getBytes();
    if (bytes > checkpoint::kPieceBytesMax)
      net::throwAsKj(Error(ErrorCode::kBadData,
                           fmt::format("a request for {} bytes of {}; a piece has at most {}",
                                       bytes, path.string(), checkpoint::kPieceBytesMax)));
    return host_
        .onDisk<std::string>([disk = options_.file_system, path, offset, bytes] {
          const auto file = disk->open(path);
          if (offset > file->size() || bytes > file->size() - offset)
            throw Error(ErrorCode::kBadData,
                        fmt::format("{} ends before byte {}", path.string(), offset + bytes));
          std::string piece(bytes, '\0');
          file->read(offset, piece.data(), piece.size());
          return piece;
        })
        .then([context](const std::string& piece) mutable {
          DTF_FAILPOINT("gather.before_piece");
          context.getResults().setData(
              kj::arrayPtr(reinterpret_cast<const kj::byte*>(piece.data()), piece.size()));
          context.getResults().setChecksum(checksumOf(piece));
        });
  }

  kj::Promise<void> drop(DropContext context) override {
    const std::string name = nameOf(context.getParams().getName());
    return host_
        .askNow<bool>([chief = chief_](shard::Shard& shard) {
          shard.workers().checkDeclared(kChief.index,
                                        chief);  // rejects a replaced chief
          return true;
        })
        .then([this, name](bool) {
          return host_.onDisk<bool>([options = options_, name] {
            checkpoint::dropStaying(*options.file_system, checkpoint::stayingFolder(options.folder),
                                    name);
            return true;
          });
        })
        .ignoreResult();
  }

 private:
  std::filesystem::path folderOf(capnp::Text::Reader name) const {
    return checkpoint::stayingFolder(options_.folder) / nameOf(name);
  }

  ShardHost& host_;
  const CheckpointOptions& options_;
  const Incarnation chief_;
};

}  // namespace

schema::PsStaying::Client makeStaying(ShardHost& host, const CheckpointOptions& options,
                                      Incarnation chief) {
  return kj::heap<StayingSession>(host, options, chief);
}

}  // namespace dtf::host
