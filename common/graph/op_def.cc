#include "common/graph/op_def.h"

#include <utility>

#include "common/base/check.h"

namespace dtf::graph {

void OpCatalog::add(OpDef def) {
  std::string name = def.name;
  DTF_CHECK_MSG(!name.empty() && def.infer != nullptr, name);
  const bool added = defs_.emplace(name, std::move(def)).second;
  DTF_CHECK_MSG(added, "the op " + name + " is defined twice");
}

const OpDef* OpCatalog::find(std::string_view name) const {
  const auto found = defs_.find(name);
  return found == defs_.end() ? nullptr : &found->second;
}

std::vector<std::string_view> OpCatalog::names() const {
  std::vector<std::string_view> names;
  names.reserve(defs_.size());
  for (const auto& [name, def] : defs_) names.push_back(name);
  return names;
}

}  // namespace dtf::graph
