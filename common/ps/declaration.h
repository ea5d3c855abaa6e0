#pragma once

// Checks of what a worker declares: is it sane, and is it what the others declared?

#include <string>
#include <string_view>
#include <vector>

#include "common/ps/parameter_client.h"

namespace dtf::ps {

// 120 GiB: what one message can carry as chunks of 256 MiB (common/wire/arena_codec.h).
inline constexpr uint64_t kShardElementsMax = uint64_t{480} << 26;

// Moving averages have a momentum from 0 to below 1. Slices lie in their variables, and fill their
// shards without overlap or more gaps than alignment makes; those of sparse variables are whole
// rows, and the last. What passes is safe to index by, and asks for no more memory than its
// variables do.
// Errors: kBadConfig saying what is wrong.
void validateLayout(const ParameterLayout& layout);

// That, and whether the rest is sane and fits the cluster.
// Errors: kBadConfig saying what is wrong.
void validateDeclaration(const ModelDeclaration& declaration, uint32_t ps_tasks, uint32_t workers);

// Everything that was declared but the layout: optimizer, replication, steps and settings, in a
// fixed order.
std::vector<Setting> settingsOf(const ModelDeclaration& declaration);

// How `other` differs from `job`, with both values: "data.seed is 2, the job's is 1; ...", after
// the first eight only how many more; empty when they are equal. `whose` says whose the values of
// `job` are.
std::string declarationDifference(const ModelDeclaration& job, const ModelDeclaration& other,
                                  std::string_view whose = "the job's");

}  // namespace dtf::ps
