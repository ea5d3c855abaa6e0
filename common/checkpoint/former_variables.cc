#include "common/checkpoint/former_variables.h"

#include <algorithm>
#include <map>
#include <utility>

#include "common/base/check.h"
#include "common/model/former_names.h"

namespace dtf::checkpoint {

namespace {

using Names = std::vector<std::string>;

// Returns the names that `others` lacks, grouped by their present-day names.
std::map<std::string, Names> withoutPartner(const Names& names, const Names& others) {
  std::map<std::string, Names> found;
  for (const std::string& name : names)
    if (std::find(others.begin(), others.end(), name) == others.end())
      found[model::todaysVariable(name)].push_back(name);
  return found;
}

}  // namespace

Manifest underNames(Manifest saved, const std::vector<std::string>& wanted) {
  const Names names = namesOf(saved.variables);
  const std::map<std::string, Names> theirs = withoutPartner(names, wanted);
  const std::map<std::string, Names> ours = withoutPartner(wanted, names);
  std::map<std::string, std::string> renamed;  // variables and slots
  for (VariableInfo& variable : saved.variables) {
    const auto from = theirs.find(model::todaysVariable(variable.name));
    const auto to = ours.find(model::todaysVariable(variable.name));
    if (from == theirs.end() || to == ours.end()) continue;
    const bool is_sure = from->second.size() == 1 && to->second.size() == 1;
    if (!is_sure || from->second[0] != variable.name) continue;
    const std::string& name = to->second[0];
    DTF_CHECK(renamed.emplace(variable.name, name).second);
    for (const std::string& slot : variable.slots)
      renamed.emplace(variable.name + "/" + slot, name + "/" + slot);
    variable.name = name;
  }
  for (ShardFile& shard : saved.shards)
    for (StoredPart& part : shard.parts)
      if (const auto name = renamed.find(part.name); name != renamed.end())
        part.name = name->second;
  return saved;
}

}  // namespace dtf::checkpoint
