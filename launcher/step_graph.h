#pragma once

// What a worker of a training job does in each step, and what passes between it and the ps: as
// text, as JSON, for Graphviz.

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/base/json.h"
#include "common/engine/task_part.h"
#include "common/graph/placer.h"

namespace dtf::launcher {

// A variable that a step reads from ps and whose gradient it sends there; or one of the two. Value
// type.
struct ExchangedVariable {
  struct Share {
    TaskId ps;
    uint64_t bytes = 0;  // of its values
  };
  std::string name;
  std::vector<Share> shares;         // one, or of a split variable several
  uint64_t pulled_bytes = 0;         // 0: it isn't read
  uint64_t pushed_bytes_max = 0;     // 0: it has no gradient
  bool is_pushed_as_rows = false;    // of those that the batch looks up: no more than that
  std::vector<std::string> readers;  // ops, by name
  std::string pusher;                // the op whose output is its gradient
};

// In the order of `placement`. `part`: see train::trainingPart().
std::vector<ExchangedVariable> exchangedVariables(const engine::TaskPart& part,
                                                  const graph::Placement& placement,
                                                  const ShardHosts& hosts = {});

// A line for each op with what it gives and its device; what each ps sends and gets; the sums.
std::string stepText(const engine::TaskPart& part, const graph::Placement& placement,
                     const ShardHosts& hosts = {});
Json stepJson(const engine::TaskPart& part, const graph::Placement& placement,
              const ShardHosts& hosts = {});
// A digraph with a cluster for each ps, and one for each device of the worker; what passes between
// them is labelled with its bytes.
std::string stepDot(const engine::TaskPart& part, const graph::Placement& placement,
                    const ShardHosts& hosts = {});

}  // namespace dtf::launcher
