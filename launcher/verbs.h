#pragma once

// The verbs of dtf-launch, with their help; their options are in option_table.h.

#include <span>
#include <string>
#include <string_view>

#include "launcher/options.h"

namespace dtf::launcher {

// A row of the table. Value type.
struct VerbInfo {
  std::string_view name;
  Verb verb;
  std::string_view words;  // after the name
  std::string_view what;
  std::string_view more;  // for `help VERB`
};

std::span<const VerbInfo> allVerbs();

// Null: there is no such verb.
const VerbInfo* verbNamed(std::string_view name);
std::string_view nameOf(Verb verb);

// Returns the verb that `word` resembles, or which other tools call so; empty: none.
std::string verbNear(const std::string& word);

}  // namespace dtf::launcher
