#include "common/wire/checkpoint/staying_calls.h"

#include <fmt/format.h>

#include <utility>

#include "common/base/check.h"
#include "common/base/checksum.h"
#include "common/checkpoint/shard_transfer.h"
#include "common/net/error_bridge.h"
#include "common/wire/checkpoint/shard_calls.h"
#include "common/wire/checkpoint_codec.h"
#include "common/wire/ps/every_ps.h"

namespace dtf::wire {

schema::PsStaying::Client StayingCalls::ps(uint32_t ps_task) {
  return checkpoint_.session(ps_task).stayingRequest().send().getStaying();
}

kj::Promise<std::vector<checkpoint::SavedShard>> StayingCalls::save(const std::string& name,
                                                                    const CutPosition& position) {
  return fromEveryPs<checkpoint::SavedShard>(
      checkpoint_.control(), "write its shard of the checkpoint", checkpoint_.diskSeconds(),
      [&](uint32_t i) {
        auto request = ps(i).saveRequest();
        request.setName(name);
        encodePosition(position, request.initPosition(static_cast<uint32_t>(position.size())));
        return request.send().then([](auto&& response) {
          return net::bridgeErrors([&] { return decodeSaved(response.getSaved()); });
        });
      });
}

kj::Promise<std::vector<std::vector<checkpoint::FoundShard>>> StayingCalls::find(
    const std::string& name, const std::vector<std::vector<checkpoint::ShardFile>>& wanted) {
  using Found = std::vector<checkpoint::FoundShard>;
  return fromEveryPs<Found>(
      checkpoint_.control(), "look for its shards of a checkpoint", checkpoint_.diskSeconds(),
      [&](uint32_t i) -> kj::Promise<Found> {
        const std::vector<checkpoint::ShardFile>& files = wanted.at(i);
        if (files.empty()) return Found{};
        auto request = ps(i).findRequest();
        request.setName(name);
        encodeWanted(files, request.initFiles(static_cast<uint32_t>(files.size())));
        return request.send().then([count = files.size()](auto&& response) {
          return net::bridgeErrors([&] { return decodeFound(response.getFound(), count); });
        });
      });
}

kj::Promise<std::string> StayingCalls::fetch(uint32_t ps_task,
                                             const checkpoint::StayingPiece& piece) {
  DTF_CHECK(piece.bytes > 0 && piece.bytes <= checkpoint::kPieceBytesMax);
  auto request = ps(ps_task).fetchRequest();
  request.setName(piece.name);
  request.setFile(piece.file);
  request.setOffset(piece.offset);
  request.setBytes(static_cast<uint32_t>(piece.bytes));
  const std::string who = checkpoint_.control().host(ps_task).name();
  return checkpoint_.control().guard(
      fromPs(checkpoint_.control(), ps_task,
             fmt::format("send {} from byte {} on", piece.file, piece.offset), kPieceSeconds,
             request.send().then([bytes = piece.bytes, who](auto&& response) {
               return checkedPiece(response.getData(), response.getChecksum(), bytes, who);
             })));
}

kj::Promise<void> StayingCalls::drop(const std::string& name) {
  return whenDone(fromEveryPs<Nothing>(checkpoint_.control(), "remove its shard of a checkpoint",
                                       checkpoint_.diskSeconds(), [&](uint32_t i) {
                                         auto request = ps(i).dropRequest();
                                         request.setName(name);
                                         return sent(request);
                                       }));
}

}  // namespace dtf::wire
