#pragma once

// checkpoint:: values to and from the schema.

#include "common/checkpoint/checkpoint_client.h"
#include "common/ps/parameter_client.h"
#include "common/wire/ps.capnp.h"

namespace dtf::wire {

void encodeSaved(const checkpoint::SavedShard& saved, schema::PsCheckpoint::Saved::Builder builder);
// What it says is checked when the manifest is made of it.
// Errors: kBadData for more parts than an answer has room for.
checkpoint::SavedShard decodeSaved(schema::PsCheckpoint::Saved::Reader reader);

// An upper bound of what encodeSaved() will take for that ps's part of the model.
uint64_t savedBytesMax(const ps::ModelDeclaration& model, uint32_t ps_task);

void encodeCut(const checkpoint::SnapshotName& name, schema::Held::Cut::Builder builder);
checkpoint::SnapshotName decodeCut(schema::Held::Cut::Reader reader);
// Errors: kBadData for more snapshots than a ps can have.
checkpoint::HeldValues decodeHeld(schema::Held::Reader reader);

void encodeCutHead(const checkpoint::CutHead& head,
                   schema::PsCheckpoint::ExpectParams::Builder builder);
// Errors: kBadData for more workers or clocks than a job can have tasks.
checkpoint::CutHead decodeCutHead(schema::PsCheckpoint::ExpectParams::Reader reader);

void encodePosition(const CutPosition& position, capnp::List<uint64_t>::Builder builder);
CutPosition decodePosition(capnp::List<uint64_t>::Reader reader);

}  // namespace dtf::wire
