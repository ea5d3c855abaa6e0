#include "common/engine/variable_store.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"

namespace dtf::engine {
namespace {

std::string text(const graph::TensorSpec& spec) {
  return std::string(dtypeName(spec.dtype)) + spec.shape.str();
}

// Returns whether only the store refers to the variable, and it has no value.
bool isUnused(const std::shared_ptr<Variable>& variable) {
  return variable.use_count() == 1 && !variable->hasValue();
}

}  // namespace

VariableStore::VariableStore(size_t variables_max, std::shared_ptr<ByteBudget> budget,
                             Incarnation process)
    : variables_max_(variables_max), budget_(std::move(budget)), process_(process) {
  DTF_CHECK(variables_max > 0 && budget_ != nullptr);
}

VariableStore::VariableStore(size_t variables_max, uint64_t bytes_max)
    : VariableStore(variables_max, ByteBudget::create(bytes_max, "this process")) {}

std::shared_ptr<Variable> VariableStore::use(const ResourceKey& key, const graph::TensorSpec& spec,
                                             const std::string& node) {
  MutexLock lock(mutex_);
  const auto known = variables_.find(key);
  if (known != variables_.end()) {
    if (known->second->spec() == spec) return known->second;
    if (!isUnused(known->second))
      throw Error(ErrorCode::kBadConfig,
                  "node '" + node + "' (Variable) is " + text(spec) + ", but the variable " +
                      key.text() + " is " + text(known->second->spec()) +
                      " since another graph made it; give it another shared_name or container");
    variables_.erase(known);
  }
  if (variables_.size() >= variables_max_) forgetUnused();
  if (variables_.size() >= variables_max_)
    throw Error(ErrorCode::kUnavailable, "node '" + node + "' (Variable) is one more than the " +
                                             std::to_string(variables_max_) +
                                             " variables that a task may have");
  auto made = std::make_shared<Variable>(key.name, spec, budget_, process_);
  variables_.emplace(key, made);
  return made;
}

void VariableStore::reset(const std::string& container) {
  MutexLock lock(mutex_);
  for (const auto& [key, variable] : variables_)
    if (key.container == container) variable->clear();
  forgetUnused();
}

// Users get variables under the lock, so an unused variable stays unused.
void VariableStore::forgetUnused() {
  std::erase_if(variables_, [](const auto& entry) { return isUnused(entry.second); });
}

VariableStore::Load VariableStore::load() const {
  MutexLock lock(mutex_);
  Load load;
  for (const auto& [key, variable] : variables_) {
    if (!variable->hasValue()) continue;
    ++load.variables;
    load.bytes += static_cast<uint64_t>(variable->spec().shape.elements()) *
                  dtypeBytes(variable->spec().dtype);
  }
  return load;
}

}  // namespace dtf::engine
