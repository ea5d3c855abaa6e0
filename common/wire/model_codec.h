#pragma once

// Declarations and step states to and from the schema. Decoding checks everything that a peer could
// lie about before it allocates or uses it: counts, ranges, alignment, overlap.

#include "common/arena/model_declaration.h"
#include "common/replication/step_state.h"
#include "common/wire/types.capnp.h"

namespace dtf::wire {

// Bounds of the models that a ps accepts. Beyond them: kBadConfig with the name of the bound.
inline constexpr uint32_t kVariablesMax = 100'000;
inline constexpr uint32_t kPsTasksMax = 4'096;
inline constexpr uint32_t kSettingsMax = 4'096;
inline constexpr uint32_t kSettingBytesMax = 4'096;  // of a name, and of a value
// For all shards together, as many as a control message has room for.
inline constexpr uint32_t kSlicesMax = 1 << 19;

void encodeModel(const arena::ModelDeclaration& model, schema::Model::Builder builder);

// Errors: kBadConfig with the name of the field that is out of range.
arena::ModelDeclaration decodeModel(schema::Model::Reader reader);

void encodeStepState(const replication::StepState& state, schema::StepState::Builder builder);

// Errors: kInternal for an outcome that no version sends.
replication::StepState decodeStepState(schema::StepState::Reader reader);

void encodePhaseTimes(const replication::PhaseTimes& times, schema::PhaseTimes::Builder builder);
replication::PhaseTimes decodePhaseTimes(schema::PhaseTimes::Reader reader);

void encodeTask(TaskId task, schema::Task::Builder builder);
TaskId decodeTask(schema::Task::Reader reader);

}  // namespace dtf::wire
