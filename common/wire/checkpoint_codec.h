#pragma once

// checkpoint:: values to and from the schema.

#include "common/arena/model_declaration.h"
#include "common/checkpoint/checkpoint_client.h"
#include "common/wire/ps.capnp.h"

namespace dtf::wire {

void encodeSaved(const checkpoint::SavedShard& saved, schema::PsCheckpoint::Saved::Builder builder);
// The maker of the manifest checks the values.
// Errors: kBadData for more parts than a reply has room for.
checkpoint::SavedShard decodeSaved(schema::PsCheckpoint::Saved::Reader reader);

// Returns an upper bound for the bytes of encodeSaved() for that ps's part of the model.
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

// The list of files of PsStaying.find(): only their names, sizes and checksums.
void encodeWanted(const std::vector<checkpoint::ShardFile>& files,
                  capnp::List<schema::PsStaying::File>::Builder builder);
// Errors: kBadData for more files than a job can have ps, or for an invalid name.
std::vector<checkpoint::ShardFile> decodeWanted(
    capnp::List<schema::PsStaying::File>::Reader reader);
void encodeFound(const std::vector<checkpoint::FoundShard>& found,
                 capnp::List<schema::PsStaying::Found>::Builder builder);
// Errors: kBadData for another number of answers than `count`.
std::vector<checkpoint::FoundShard> decodeFound(
    capnp::List<schema::PsStaying::Found>::Reader reader, size_t count);

// Returns the name of a folder or file from the network, which is never a path.
// Errors: kBadData if it is no valid name; `what` describes it.
std::string decodeFileName(capnp::Text::Reader reader, const char* what);

void encodePosition(const CutPosition& position, capnp::List<uint64_t>::Builder builder);
CutPosition decodePosition(capnp::List<uint64_t>::Reader reader);

}  // namespace dtf::wire
