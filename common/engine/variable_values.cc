#include "common/engine/variable_values.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"

namespace dtf::engine {

void VariableValues::set(std::string_view name, std::shared_ptr<const Tensor> value) {
  DTF_CHECK(value != nullptr);
  MutexLock lock(mutex_);
  values_[std::string(name)].swap(value);  // the one before is freed when the lock is gone
}

std::shared_ptr<const Tensor> VariableValues::get(std::string_view name) const {
  MutexLock lock(mutex_);
  const auto known = values_.find(name);
  if (known != values_.end()) return known->second;
  throw Error(ErrorCode::kBadConfig, "the variable '" + std::string(name) + "' has no value yet");
}

}  // namespace dtf::engine
