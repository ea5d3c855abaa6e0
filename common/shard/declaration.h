#pragma once

// Checks of a worker's declaration: is it sane, and does it equal the others'?

#include <string>
#include <string_view>
#include <vector>

#include "common/arena/model_declaration.h"
#include "common/arena/parameter_layout.h"

namespace dtf::shard {

// 120 GiB: the most that one message carries in chunks of 256 MiB (common/wire/arena_codec.h).
inline constexpr uint64_t kShardElementsMax = uint64_t{480} << 26;

// Checks that moving averages have a momentum from 0 to below 1, and that slices lie in their
// variables and fill their shards, without overlap or more gaps than alignment makes. Slices of
// sparse variables are whole rows, and the last. A layout that passes is safe to index by, and
// needs no more memory than its variables do.
// Errors: kBadConfig with the fault.
void validateLayout(const arena::ParameterLayout& layout);

// Checks the layout, and whether the rest is sane and fits the cluster.
// Errors: kBadConfig with the fault.
void validateDeclaration(const arena::ModelDeclaration& declaration, uint32_t ps_tasks,
                         uint32_t workers);

// Returns everything declared but the layout: optimizer, replication, steps and settings, in a
// fixed order.
std::vector<arena::Setting> settingsOf(const arena::ModelDeclaration& declaration);

// Returns whether both declare the same job. Settings of an earlier version, with its names of
// layers, keys and losses, are the same settings (model/former_names.h).
bool declareTheSame(const arena::ModelDeclaration& a, const arena::ModelDeclaration& b);

// Returns how `other` differs from `job`, with both values: "data.seed is 2, the job's is 1; ...",
// the first eight, then the number of others; empty when they are the same. `whose`: the owner of
// `job` in the text.
std::string declarationDifference(const arena::ModelDeclaration& job,
                                  const arena::ModelDeclaration& other,
                                  std::string_view whose = "the job's");

}  // namespace dtf::shard
