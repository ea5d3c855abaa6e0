#pragma once

// Checks of what a worker declares: is it sane, and is it what the others declared?

#include <string>

#include "common/ps/parameter_client.h"

namespace dtf::ps {

// A shard of more elements (256 GiB) is a mistake, or an attack.
inline constexpr uint64_t kShardElementsMax = uint64_t{1} << 36;

// Errors: kBadConfig saying what is wrong. Everything that passes is safe to allocate and to index
// by.
void validateDeclaration(const ModelDeclaration& declaration, uint32_t ps_tasks, uint32_t workers);

// Why two declarations differ, in words, with both values; empty when they are equal.
std::string declarationDifference(const ModelDeclaration& ours, const ModelDeclaration& theirs);

}  // namespace dtf::ps
