#include "common/wire/checkpoint_codec.h"

namespace dtf::wire {

namespace {

std::string text(capnp::Text::Reader reader) {
  return {reader.begin(), reader.size()};
}

}  // namespace

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
  for (const auto part : reader.getParts())
    saved.file.parts.push_back({text(part.getName()), part.getBegin(), part.getCount(),
                                part.getOffset(), part.getChecksum()});
  return saved;
}

void encodePosition(const checkpoint::Position& position, capnp::List<uint64_t>::Builder builder) {
  for (uint32_t i = 0; i < builder.size(); ++i) builder.set(i, position[i]);
}

checkpoint::Position decodePosition(capnp::List<uint64_t>::Reader reader) {
  checkpoint::Position position;
  for (const uint64_t at : reader) position.push_back(at);
  return position;
}

}  // namespace dtf::wire
