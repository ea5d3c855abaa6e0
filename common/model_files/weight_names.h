#pragma once

// The names by which the tensors of a file are matched with variables: the names in the file, after
// the prefix and the renames that the user states.

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "common/model_files/name_rules.h"
#include "common/model_files/weight_reader.h"

namespace dtf::model_files {

// Parses FROM=TO.
// Errors: kUsage.
Rename parseRename(std::string_view text);

// Applies the rules to the tensors of `file`. The longest FROM of a name counts, a whole name most,
// and a name is changed once. A name that doesn't begin with a prefix or FROM may do so behind
// DataParallel's "module.".
// Errors: kUsage naming the file, if no name has the prefix or a FROM, or two tensors get one name.
void applyNames(FoundWeights& weights, const NameRules& rules, const std::filesystem::path& file);

// Returns the name without the "module." that PyTorch's DataParallel puts before all; nullopt:
// there is none.
std::optional<std::string> withoutModule(std::string_view name);

}  // namespace dtf::model_files
