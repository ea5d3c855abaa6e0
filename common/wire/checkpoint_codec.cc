#include "common/wire/checkpoint_codec.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/base/error.h"
#include "common/optimizer/optimizer.h"
#include "common/wire/message_limits.h"
#include "common/wire/model_codec.h"

namespace dtf::wire {

namespace {

std::string text(capnp::Text::Reader reader) {
  return {reader.begin(), reader.size()};
}

// The most snapshots of one ps, which keeps two, and others that it could not remove.
constexpr uint32_t kSnapshotsMax = 64;

// The longest description of a shard's damage.
constexpr size_t kDamageBytesMax = 1024;

// Four numbers, a pointer, a name of at least one character.
constexpr uint64_t kPartBytesMin = 48;

// A standing is sent as its number.
constexpr bool isSentAs(checkpoint::Standing standing, schema::PsStaying::Standing sent) {
  return static_cast<uint64_t>(standing) == static_cast<uint64_t>(sent);
}
static_assert(isSentAs(checkpoint::Standing::kAbsent, schema::PsStaying::Standing::ABSENT));
static_assert(isSentAs(checkpoint::Standing::kWhole, schema::PsStaying::Standing::WHOLE));
static_assert(isSentAs(checkpoint::Standing::kDamaged, schema::PsStaying::Standing::DAMAGED));

}  // namespace

uint64_t savedBytesMax(const arena::ModelDeclaration& model, uint32_t ps_task) {
  constexpr uint64_t kBesideParts = 1024;
  const uint32_t slots = optimizer::slotCount(model.optimizer);
  size_t slot_name_bytes = 0;
  for (uint32_t slot = 0; slot < slots; ++slot)
    slot_name_bytes = std::max(slot_name_bytes, optimizer::slotName(model.optimizer, slot).size());
  uint64_t bytes = kBesideParts;
  for (const arena::Slice& slice : model.layout.shards[ps_task].slices) {
    const std::string& name = model.layout.variables[slice.variable].name;
    bytes +=
        (1 + slots) * (kPartBytesMin + name.size() + 1 + slot_name_bytes + sizeof(capnp::word));
  }
  return bytes;
}

void encodeSaved(const checkpoint::SavedShard& saved,
                 schema::PsCheckpoint::Saved::Builder builder) {
  builder.setFile(saved.file.file);
  builder.setBytes(saved.file.bytes);
  builder.setChecksum(saved.file.checksum);
  builder.setApplies(saved.clock.applies);
  builder.setBeta1Power(saved.clock.beta1_power);
  builder.setBeta2Power(saved.clock.beta2_power);
  builder.setStallSeconds(saved.stall_seconds);
  auto parts = builder.initParts(static_cast<uint32_t>(saved.file.parts.size()));
  for (uint32_t i = 0; i < parts.size(); ++i) {
    const checkpoint::StoredPart& part = saved.file.parts[i];
    parts[i].setName(part.name);
    parts[i].setBegin(part.begin);
    parts[i].setCount(part.count);
    parts[i].setOffset(part.offset);
    parts[i].setChecksum(part.checksum);
  }
}

checkpoint::SavedShard decodeSaved(schema::PsCheckpoint::Saved::Reader reader) {
  checkpoint::SavedShard saved;
  saved.file.file = text(reader.getFile());
  saved.file.bytes = reader.getBytes();
  saved.file.checksum = reader.getChecksum();
  saved.clock = {reader.getApplies(), reader.getBeta1Power(), reader.getBeta2Power()};
  saved.stall_seconds = reader.getStallSeconds();
  const auto parts = reader.getParts();
  if (parts.size() > kAnswerLimits.bytes_max / kPartBytesMin)
    throw Error(ErrorCode::kBadData, "a ps reports " + std::to_string(parts.size()) +
                                         " saved parts of variables, too many");
  for (const auto part : parts)
    saved.file.parts.push_back({text(part.getName()), part.getBegin(), part.getCount(),
                                part.getOffset(), part.getChecksum()});
  return saved;
}

void encodeCut(const checkpoint::CutName& name, schema::Held::Cut::Builder builder) {
  builder.setEpoch(name.epoch);
  builder.setStep(name.step);
}

checkpoint::CutName decodeCut(schema::Held::Cut::Reader reader) {
  return {reader.getEpoch(), reader.getStep()};
}

void encodeHeld(const checkpoint::PsState& held, schema::Held::Builder builder) {
  builder.setEpoch(held.epoch);
  builder.setUpdates(held.step);
  builder.setRestored(held.origin != checkpoint::EpochOrigin::kInitialValues);
  builder.setFromSnapshot(held.origin == checkpoint::EpochOrigin::kSnapshot);
  builder.setOriginEpoch(held.origin_cut.epoch);
  builder.setOriginStep(held.origin_cut.step);
  builder.setReplicaEpoch(held.replica_epoch);
  auto snapshots = builder.initSnapshots(static_cast<uint32_t>(held.snapshots.size()));
  for (uint32_t i = 0; i < snapshots.size(); ++i) encodeCut(held.snapshots[i], snapshots[i]);
}

checkpoint::PsState decodeHeld(schema::Held::Reader reader) {
  checkpoint::PsState held;
  held.epoch = reader.getEpoch();
  held.step = reader.getUpdates();
  if (reader.getRestored())
    held.origin = reader.getFromSnapshot() ? checkpoint::EpochOrigin::kSnapshot
                                           : checkpoint::EpochOrigin::kCheckpoint;
  held.origin_cut = {reader.getOriginEpoch(), reader.getOriginStep()};
  if (reader.getSnapshots().size() > kSnapshotsMax)
    throw Error(ErrorCode::kBadData, fmt::format("a ps offers {} snapshots, more than {}",
                                                 reader.getSnapshots().size(), kSnapshotsMax));
  held.replica_epoch = reader.getReplicaEpoch();
  for (const auto& cut : reader.getSnapshots()) held.snapshots.push_back(decodeCut(cut));
  return held;
}

void encodeCutHead(const checkpoint::CutHead& head,
                   schema::PsCheckpoint::ExpectParams::Builder builder) {
  builder.setGlobalStep(head.global_step);
  encodePosition(head.worker_batches,
                 builder.initWorkerBatches(static_cast<uint32_t>(head.worker_batches.size())));
  auto clocks = builder.initClocks(static_cast<uint32_t>(head.clocks.size()));
  for (uint32_t i = 0; i < clocks.size(); ++i) {
    clocks[i].setApplies(head.clocks[i].applies);
    clocks[i].setBeta1Power(head.clocks[i].beta1_power);
    clocks[i].setBeta2Power(head.clocks[i].beta2_power);
  }
}

checkpoint::CutHead decodeCutHead(schema::PsCheckpoint::ExpectParams::Reader reader) {
  if (reader.getWorkerBatches().size() > kPsTasksMax || reader.getClocks().size() > kPsTasksMax)
    throw Error(
        ErrorCode::kBadData,
        fmt::format("a checkpoint of {} workers and {} ps, more than {}",
                    reader.getWorkerBatches().size(), reader.getClocks().size(), kPsTasksMax));
  checkpoint::CutHead head;
  head.global_step = reader.getGlobalStep();
  head.worker_batches = decodePosition(reader.getWorkerBatches());
  for (const auto clock : reader.getClocks())
    head.clocks.push_back({clock.getApplies(), clock.getBeta1Power(), clock.getBeta2Power()});
  return head;
}

void encodeWanted(const std::vector<checkpoint::ShardFile>& files,
                  capnp::List<schema::PsStaying::File>::Builder builder) {
  for (uint32_t i = 0; i < builder.size(); ++i) {
    builder[i].setName(files[i].file);
    builder[i].setBytes(files[i].bytes);
    builder[i].setChecksum(files[i].checksum);
  }
}

std::vector<checkpoint::ShardFile> decodeWanted(
    capnp::List<schema::PsStaying::File>::Reader reader) {
  if (reader.size() > kPsTasksMax)
    throw Error(ErrorCode::kBadData,
                fmt::format("a search for {} shards, more than {}", reader.size(), kPsTasksMax));
  std::vector<checkpoint::ShardFile> files;
  for (const auto file : reader)
    files.push_back({decodeFileName(file.getName(), "a shard's file"),
                     file.getBytes(),
                     file.getChecksum(),
                     {}});
  return files;
}

void encodeFound(const std::vector<checkpoint::FoundShard>& found,
                 capnp::List<schema::PsStaying::Found>::Builder builder) {
  for (uint32_t i = 0; i < builder.size(); ++i) {
    builder[i].setStanding(static_cast<schema::PsStaying::Standing>(found[i].standing));
    builder[i].setReason(found[i].reason.substr(0, kDamageBytesMax));
  }
}

std::vector<checkpoint::FoundShard> decodeFound(
    capnp::List<schema::PsStaying::Found>::Reader reader, size_t count) {
  if (reader.size() != count)
    throw Error(
        ErrorCode::kBadData,
        fmt::format("a ps reported the state of {} shards instead of {}", reader.size(), count));
  std::vector<checkpoint::FoundShard> found;
  for (const auto one : reader) {
    // An unknown standing, of a later version, counts as damaged.
    const bool known = one.getStanding() <= schema::PsStaying::Standing::DAMAGED;
    found.push_back({known ? static_cast<checkpoint::Standing>(one.getStanding())
                           : checkpoint::Standing::kAbsent,
                     text(one.getReason())});
  }
  return found;
}

std::string decodeFileName(capnp::Text::Reader reader, const char* what) {
  std::string name = text(reader);
  if (!checkpoint::isPlainName(name))
    throw Error(ErrorCode::kBadData, "'" + name + "' is no name of " + what);
  return name;
}

void encodePosition(const CutPosition& position, capnp::List<uint64_t>::Builder builder) {
  for (uint32_t i = 0; i < builder.size(); ++i) builder.set(i, position[i]);
}

CutPosition decodePosition(capnp::List<uint64_t>::Reader reader) {
  CutPosition position;
  for (const uint64_t at : reader) position.push_back(at);
  return position;
}

}  // namespace dtf::wire
