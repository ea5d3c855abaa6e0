#include "common/host/shard_capture.h"

#include <utility>

namespace dtf::host {

kj::Promise<shard::CapturedShard> takeCapture(ShardHost& host, Incarnation chief,
                                              CutPosition position) {
  return host.askNow<shard::CapturedShard>(
      [chief, position = std::move(position)](shard::Shard& shard) {
        shard::CapturedShard captured = shard.cuts().captured(chief, position);
        shard.cuts().releaseCapture();
        return captured;
      });
}

kj::Promise<checkpoint::SavedShard> saveCapture(
    ShardHost& host, Incarnation chief, CutPosition position,
    std::function<checkpoint::SavedShard(const shard::CapturedShard&)> write) {
  return takeCapture(host, chief, std::move(position))
      .then([&host, write = std::move(write)](shard::CapturedShard captured) mutable {
        return host
            .onDisk<checkpoint::SavedShard>(
                [write = std::move(write), captured] { return write(captured); })
            .then([&host, version = captured.capture->version](checkpoint::SavedShard saved) {
              return host.askNow<checkpoint::SavedShard>([version, saved](shard::Shard& shard) {
                shard.cuts().noteSaved(version);
                return saved;
              });
            });
      });
}

}  // namespace dtf::host
