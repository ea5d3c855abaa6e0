#pragma once

// checkpoint:: values to and from the schema.

#include "common/arena/model_declaration.h"
#include "common/checkpoint/checkpoint_client.h"
#include "common/wire/ps.capnp.h"

namespace dtf::wire {

void encodeSaved(const checkpoint::SavedShard& saved, schema::PsCheckpoint::Saved::Builder builder);
// What it says is checked when the manifest is made of it.
// Errors: kBadData for more parts than an answer has room for.
checkpoint::SavedShard decodeSaved(schema::PsCheckpoint::Saved::Reader reader);

// An upper bound of what encodeSaved() will take for that ps's part of the model.
uint64_t savedBytesMax(const arena::ModelDeclaration& model, uint32_t ps_task);

void encodeCut(const checkpoint::CutName& name, schema::Held::Cut::Builder builder);
checkpoint::CutName decodeCut(schema::Held::Cut::Reader reader);
void encodeHeld(const checkpoint::PsState& held, schema::Held::Builder builder);
// Errors: kBadData for more snapshots than a ps can have.
checkpoint::PsState decodeHeld(schema::Held::Reader reader);

void encodeCutHead(const checkpoint::CutHead& head,
                   schema::PsCheckpoint::ExpectParams::Builder builder);
// Errors: kBadData for more workers or clocks than a job can have tasks.
checkpoint::CutHead decodeCutHead(schema::PsCheckpoint::ExpectParams::Reader reader);

// A list of files, as PsStaying.find() has it; only names, sizes and checksums travel.
void encodeWanted(const std::vector<checkpoint::ShardFile>& files,
                  capnp::List<schema::PsStaying::File>::Builder builder);
// Errors: kBadData for more files than a job can have ps, or a name that is none.
std::vector<checkpoint::ShardFile> decodeWanted(
    capnp::List<schema::PsStaying::File>::Reader reader);
void encodeFound(const std::vector<checkpoint::FoundShard>& found,
                 capnp::List<schema::PsStaying::Found>::Builder builder);
// Errors: kBadData for another number of answers than `count`.
std::vector<checkpoint::FoundShard> decodeFound(
    capnp::List<schema::PsStaying::Found>::Reader reader, size_t count);

// The name of a folder or file from the network: never a path.
// Errors: kBadData: it is no name of `what`.
std::string decodeFileName(capnp::Text::Reader reader, const char* what);

void encodePosition(const CutPosition& position, capnp::List<uint64_t>::Builder builder);
CutPosition decodePosition(capnp::List<uint64_t>::Reader reader);

}  // namespace dtf::wire
