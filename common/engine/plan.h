#pragma once

// One signature of a session, what is fed, fetched and run, compiled: the master's passes from the
// placed graph to a program for each device.

#include <map>
#include <span>
#include <string>
#include <vector>

#include "common/base/mutex.h"
#include "common/engine/device_queue.h"
#include "common/engine/part_program.h"
#include "common/graph/device_name.h"
#include "common/graph/graph.h"
#include "common/runtime/device.h"
#include "common/runtime/kernel.h"
#include "common/tensor/tensor.h"

namespace dtf::engine {

// A device of a session. Borrowed, with its kernels, as long as the session lives. Devices that
// share a table of kernels must not share a pool of threads in it.
struct SessionDevice {
  graph::DeviceName name;  // every field set
  runtime::Device* device = nullptr;
  const runtime::KernelTable* kernels = nullptr;
};

// A device as plans are compiled for it.
struct PlanDevice {
  SessionDevice device;
  DeviceQueue* queue = nullptr;
};

// Names as a person gives them: "x", "layer/relu:0".
struct Signature {
  std::vector<std::string> feeds;    // sorted
  std::vector<std::string> fetches;  // in the order of the results
  std::vector<std::string> targets;  // nodes; sorted
  auto operator<=>(const Signature&) const = default;
};

// Owns: the programs, and what was folded. Borrows: devices and their queues.
// Threads: a step runs with `running` held.
struct Plan {
  struct Part {
    PartProgram program;
    DeviceQueue* queue = nullptr;
    // By program.feeds(): an index into Signature::feeds, or kFolded.
    std::vector<size_t> feeds;
    static constexpr size_t kFolded = static_cast<size_t>(-1);
  };
  struct Fetch {
    size_t part = 0;
    size_t index = 0;  // of the part's fetches
    graph::TensorSpec spec;
  };

  std::vector<graph::TensorSpec> feed_specs;  // as Signature::feeds
  std::vector<Part> parts;                    // in order of device names
  std::vector<Fetch> fetches;                 // as Signature::fetches
  std::map<std::string, Tensor> folded;       // by feed of a part
  Mutex running;
};

// Prunes `placed`, whose nodes have their devices in full, to what the signature needs, folds
// constants, joins equal nodes, partitions by task and by device, and compiles each part. A pure
// function of graph, signature and devices, but for kernels that are chosen by timing.
// Errors: kBadConfig for names that aren't there, with the nearest; for a tensor that is fed twice;
// for placeholders that are needed and not fed; those of PartProgram.
void makePlan(const graph::Graph& placed, const Signature& signature,
              const std::map<std::string, PlanDevice>& devices, Plan& plan);

}  // namespace dtf::engine
