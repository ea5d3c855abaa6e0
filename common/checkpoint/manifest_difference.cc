#include <map>
#include <vector>

#include "common/base/text.h"
#include "common/checkpoint/manifest.h"

namespace dtf::checkpoint {

namespace {

std::map<std::string, const VariableInfo*> byName(const Manifest& manifest) {
  std::map<std::string, const VariableInfo*> variables;
  for (const VariableInfo& variable : manifest.variables) variables[variable.name] = &variable;
  return variables;
}

std::string slotsText(const VariableInfo& variable) {
  std::string text;
  for (const std::string& slot : variable.slots) text += (text.empty() ? "" : ", ") + slot;
  return text.empty() ? "none" : text;
}

}  // namespace

std::string manifestDifference(const Manifest& saved, const Manifest& wanted) {
  std::vector<std::string> lines;
  const auto ours = byName(wanted);
  const auto theirs = byName(saved);
  for (const auto& [name, variable] : ours) {
    const auto found = theirs.find(name);
    if (found == theirs.end())
      lines.push_back("  the checkpoint lacks " + name + " " + variable->shape.str());
    else if (found->second->shape != variable->shape)
      lines.push_back("  " + name + " has shape " + found->second->shape.str() +
                      " in the checkpoint, " + variable->shape.str() + " in this job");
    else if (found->second->slots != variable->slots)
      lines.push_back("  " + name + " has the slots " + slotsText(*found->second) +
                      " in the checkpoint, " + slotsText(*variable) + " in this job");
  }
  for (const auto& [name, variable] : theirs)
    if (!ours.contains(name))
      lines.push_back("  this job lacks " + name + " " + variable->shape.str() +
                      " of the checkpoint");
  if (saved.optimizer != wanted.optimizer)
    lines.push_back("  the optimizer is '" + saved.optimizer + "' in the checkpoint, '" +
                    wanted.optimizer +
                    "' in this job: the saved slots have no meaning for another optimizer");
  return join(lines, "\n");
}

}  // namespace dtf::checkpoint
