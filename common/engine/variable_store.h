#pragma once

// The variables of a process by name, shared by all sessions that use the same name.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "common/base/byte_budget.h"
#include "common/base/ids.h"
#include "common/base/mutex.h"
#include "common/engine/resource_key.h"
#include "common/engine/variable.h"
#include "common/graph/graph.h"

namespace dtf::engine {

// A variable with a value stays until the store ends or its container is reset, whichever session
// made it; one without, while it is in use.
// Owns: the variables, together with their users.
// Threads: thread-safe.
// Blocks: never.
// Errors: kBadConfig with the node for an existing variable with another type or shape;
// kUnavailable for more than `variables_max`.
class VariableStore {
 public:
  // `budget`: for all values, possibly shared with other uses.
  VariableStore(size_t variables_max, std::shared_ptr<ByteBudget> budget,
                Incarnation process = Incarnation::ofNow());
  explicit VariableStore(size_t variables_max = 16'384, uint64_t bytes_max = uint64_t{64} << 30);

  // `node` is for messages.
  std::shared_ptr<Variable> use(const ResourceKey& key, const graph::TensorSpec& spec,
                                const std::string& node);

  // Drops the values of all variables of the container, for all users.
  void reset(const std::string& container);

  struct Load {
    size_t variables = 0;
    uint64_t bytes = 0;  // of their values
  };
  Load load() const;

 private:
  void forgetUnused() DTF_REQUIRES(mutex_);

  const size_t variables_max_;
  const std::shared_ptr<ByteBudget> budget_;
  const Incarnation process_;
  mutable Mutex mutex_;
  std::map<ResourceKey, std::shared_ptr<Variable>> variables_ DTF_GUARDED_BY(mutex_);
};

}  // namespace dtf::engine
