#pragma once

// checkpoint:: values to and from the schema.

#include "common/checkpoint/checkpoint_client.h"
#include "common/wire/ps.capnp.h"

namespace dtf::wire {

void encodeSaved(const checkpoint::SavedShard& saved, schema::PsCheckpoint::Saved::Builder builder);
// What it says is checked when the manifest is made of it.
checkpoint::SavedShard decodeSaved(schema::PsCheckpoint::Saved::Reader reader);

void encodePosition(const checkpoint::Position& position, capnp::List<uint64_t>::Builder builder);
checkpoint::Position decodePosition(capnp::List<uint64_t>::Reader reader);

}  // namespace dtf::wire
