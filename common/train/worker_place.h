#pragma once

// Which worker of which cluster trains.

#include <cstdint>

namespace dtf::train {

// Value type.
struct WorkerPlace {
  uint32_t rank = 0;
  uint32_t workers = 1;
  uint32_t ps_tasks = 1;
  bool one_process = false;  // there is no ps: the one task of parameters is this process
};

}  // namespace dtf::train
