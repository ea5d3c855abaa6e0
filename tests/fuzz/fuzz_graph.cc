// A graph that is written op by op. An error is kBadConfig in compiler form; an accepted graph can
// be placed, or is refused by name.

#include <set>
#include <string>

#include "common/base/error.h"
#include "common/graph/device_placer.h"
#include "common/graph/prune.h"
#include "common/model/read_graph.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/heap_bound.h"
#include "tests/fuzz/memory_path.h"
#include "tests/fuzz/reached.h"

namespace {

using namespace dtf;

const fuzz::MustReach kMustReach{"a graph that is placed"};

void place(const model::GraphSpec& spec) {
  graph::DevicePlacerOptions options{.soft = spec.soft_placement};
  for (uint32_t i = 0; i < 2; ++i) {
    for (const JobKind job : {JobKind::kWorker, JobKind::kPs})
      options.devices.push_back(graph::fullDevice({job, i}));
  }
  options.preferred = options.devices[0];
  const graph::Graph placed =
      graph::withDevices(spec.graph, graph::placeOnDevices(spec.graph, options));
  std::set<std::string> devices;
  for (const graph::DeviceName& device : options.devices) devices.insert(device.str());
  for (const graph::Node& node : placed.nodes()) FUZZ_CHECK(devices.contains(node.device));
  ++fuzz::reached()["a graph that is placed"];
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const dtf::fuzz::HeapBound bound(size);
  const fuzz::MemoryPath file(data, size);
  yaml::Report report;
  try {
    const model::GraphSpec spec = model::readGraphFile(file.path(), report);
    FUZZ_CHECK(spec.steps > 0);
    for (const std::string& fetch : spec.fetches) graph::findTensor(spec.graph, fetch);
    for (const std::string& target : spec.targets) graph::findNode(spec.graph, target);
    for (const auto& [node, mark] : spec.marks)
      FUZZ_CHECK(spec.graph.find(node) != nullptr && mark.line > 0);
    place(spec);
  } catch (const Error& error) {
    FUZZ_CHECK(error.code() == ErrorCode::kBadConfig);
  }
  return 0;
}
