#pragma once

// The values of a session's variables, where they are.

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "common/base/mutex.h"
#include "common/tensor/tensor.h"

namespace dtf::engine {

// Owns: the values. One is never changed, only replaced: steps under way keep what they began with.
// Threads: thread-safe.
// Blocks: never.
// Errors: kBadConfig for a variable that has no value yet, naming it.
class VariableValues {
 public:
  void set(std::string_view name, std::shared_ptr<const Tensor> value);
  std::shared_ptr<const Tensor> get(std::string_view name) const;

 private:
  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<const Tensor>, std::less<>> values_ DTF_GUARDED_BY(mutex_);
};

}  // namespace dtf::engine
