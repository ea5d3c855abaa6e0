#pragma once

// The optimizer of a declared model between value types and Cap'n Proto. Whether its settings can
// work is checked by shard::validateDeclaration(); here only whether they are settings at all.

#include <string>

#include "common/cluster/optimizer_spec.h"
#include "common/wire/types.capnp.h"

namespace dtf::wire {

// Throws kBadConfig: "the declared model is not valid: " and what.
[[noreturn]] void refuseModel(const std::string& what);

void encodeOptimizer(const cluster::OptimizerSpec& optimizer, schema::Optimizer::Builder builder);

// What the kind and the schedule don't use is the kind's default.
// Errors: kBadConfig for a kind that no version has, settings that are not the kind's, or a value
// that the setting cannot hold.
cluster::OptimizerSpec decodeOptimizer(schema::Optimizer::Reader reader);

}  // namespace dtf::wire
