#pragma once

// Checks of what a worker declares: is it sane, and is it what the others declared?

#include <string>
#include <string_view>
#include <vector>

#include "common/ps/parameter_client.h"

namespace dtf::ps {

// 120 GiB: what one message can carry as chunks of 256 MiB (common/wire/arena_codec.h).
inline constexpr uint64_t kShardElementsMax = uint64_t{480} << 26;

// Errors: kBadConfig saying what is wrong. Everything that passes is safe to allocate and to index
// by.
void validateDeclaration(const ModelDeclaration& declaration, uint32_t ps_tasks, uint32_t workers);

// Everything that was declared but the layout: optimizer, replication, steps and settings, in a
// fixed order.
std::vector<Setting> settingsOf(const ModelDeclaration& declaration);

// How `other` differs from `job`, with both values: "data.seed is 2, the job's is 1; ..."; empty
// when they are equal. `whose` says whose the values of `job` are.
std::string declarationDifference(const ModelDeclaration& job, const ModelDeclaration& other,
                                  std::string_view whose = "the job's");

}  // namespace dtf::ps
