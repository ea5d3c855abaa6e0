#pragma once

// The optimizer of a declared model, between value types and Cap'n Proto. The decoder only checks
// that the settings exist; shard::validateDeclaration() checks their values.

#include <string>

#include "common/cluster/optimizer_spec.h"
#include "common/wire/types.capnp.h"

namespace dtf::wire {

// Throws kBadConfig: "the declared model is not valid: " followed by `what`.
[[noreturn]] void refuseModel(const std::string& what);

void encodeOptimizer(const cluster::OptimizerSpec& optimizer, schema::Optimizer::Builder builder);

// Settings that the kind and the schedule don't use have the kind's defaults.
// Errors: kBadConfig for an unknown kind, for settings of another kind, or for a value that the
// setting can't hold.
cluster::OptimizerSpec decodeOptimizer(schema::Optimizer::Reader reader);

}  // namespace dtf::wire
