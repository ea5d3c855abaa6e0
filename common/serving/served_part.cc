#include "common/serving/served_part.h"

#include <fmt/format.h>

#include <utility>

#include "common/base/error.h"
#include "common/serving/served_session.h"
#include "common/wire/session/part_codec.h"
#include "common/wire/session/tensor_codec.h"

namespace dtf::serving {

namespace {

// Memory of a compiled node besides its tensors and its description: names, kernels.
constexpr uint64_t kNodeBytes = 4096;

// The copied bytes of the messages that a step may have in flight.
uint64_t copiedBytes(const engine::TaskPart& part, uint64_t chunk_bytes) {
  std::vector<uint64_t> fetches;
  for (const graph::Output& fetch : part.fetches) fetches.push_back(part.graph.spec(fetch).bytes());
  std::map<TaskId, std::vector<uint64_t>> sends;
  for (const engine::TaskPart::Edge& edge : part.edges) {
    const graph::Node& node = part.graph.node(edge.node);
    if (node.op == "_Send") sends[edge.peer].push_back(part.graph.spec(node.inputs[0]).bytes());
  }
  uint64_t bytes = wire::copiedBytes(fetches, chunk_bytes);
  for (const auto& [peer, sizes] : sends) bytes += wire::copiedBytes(sizes, chunk_bytes);
  return bytes;
}

uint64_t heldBytes(const wire::DecodedPart& read, uint64_t chunk_bytes) {
  uint64_t bytes = read.nodes * kNodeBytes + read.described + copiedBytes(read.part, chunk_bytes);
  for (const auto& [name, value] : read.part.folded) bytes += value.bytes();
  return bytes;
}

void readEdges(const wire::DecodedPart& read, const ServedTask& task, ServedPart& made) {
  for (size_t i = 0; i < read.part.edges.size(); ++i) {
    const engine::TaskPart::Edge& edge = read.part.edges[i];
    const graph::Node& node = read.part.graph.node(edge.node);
    const Incarnation incarnation = read.peers[i];
    if (!task.address_of(edge.peer))
      throw Error(ErrorCode::kBadConfig,
                  fmt::format("node '{}': {} knows no {} in its cluster", node.name,
                              task.self.name(), edge.peer.name()));
    const auto [peer, is_new] = made.peers.emplace(edge.peer, incarnation);
    if (!is_new && peer->second != incarnation)
      throw Error(ErrorCode::kBadData, edge.peer.name() + " is two processes in one part");
    if (node.op == "_Send") {
      made.routes.destinations.emplace(edge.number, edge.peer);
    } else {
      made.routes.sources.emplace(edge.number, incarnation);
      made.sources[edge.number] = {edge.peer, incarnation, node.outputs[0].bytes()};
    }
  }
}

}  // namespace

void ServedPart::send(uint64_t step, TaskId to, std::vector<engine::PartProgram::Send> tensors,
                      Done done) {
  task->post(session,
             [number = plan, step, to, tensors = std::move(tensors), done = std::move(done)](
                 ServedSession& served) { served.leave(number, step, to, tensors, done); });
}

std::shared_ptr<ServedPart> makeServedPart(const ServedTask& task, const PartId& id,
                                           schema::Part::Reader part) {
  wire::DecodedPart read = wire::decodePart(part);
  engine::checkTaskPart(read.part, task.self, task.devices.names());
  if (engine::digestOf(read.part) != id.digest)
    throw Error(ErrorCode::kBadData, "the part isn't what its digest is of");
  auto made = std::make_shared<ServedPart>();
  made->task = &task;
  made->session = id.session;
  made->plan = id.plan;
  made->digest = id.digest;
  made->device_memory = task.device_memory;
  made->held = task.budget->take(heldBytes(read, task.limits.chunk_bytes),
                                 fmt::format("the part of plan {}", id.plan));
  readEdges(read, task, *made);
  const uint32_t first_own = read.part.edges_total;
  made->part = std::make_unique<engine::RegisteredPart>(
      std::move(read.part), task.devices.devices(), first_own, task.variables, task.queues);
  return made;
}

}  // namespace dtf::serving
