#include "tests/session_sim/session_graph.h"

#include <utility>

#include "common/graph/builder.h"
#include "common/graph/device_name.h"
#include "common/graph/op_def.h"

namespace dtf::sim {

namespace {

using graph::Output;

std::string deviceOf(TaskId task, uint32_t cpu = 0) {
  return graph::fullDevice(task, "CPU", cpu).str();
}

}  // namespace

graph::Graph graphOf(const SessionPlan& plan, const std::string& container) {
  const TaskId ps{JobKind::kPs, 0}, last_ps{JobKind::kPs, plan.ps_tasks - 1};
  const TaskId worker{JobKind::kWorker, 0}, last_worker{JobKind::kWorker, plan.workers - 1};
  const Shape shape{plan.elements};
  graph::Graph graph(graph::standardOps());
  graph::Builder b(graph);
  const auto variable = [&](const std::string& name, Shape of) {
    return Output{b.node(
        "Variable", {},
        {{"shape", std::move(of)}, {"initializer", std::string("zeros")}, {"container", container}},
        name)};
  };
  const auto on = [&](TaskId task, uint32_t cpu = 0) { return b.deviceScope(deviceOf(task, cpu)); };
  Output twice, weighted, tripled, before;
  {
    const auto here = on(worker);
    twice = {
        b.node("Scale", {b.placeholder("x", DType::kFloat32, shape)}, {{"factor", 2.0}}, "twice")};
  }
  {
    const auto here = on(ps);
    weighted = {b.node("Add", {twice, variable("w", shape)}, {}, "weighted")};
    const Output count = variable("count", shape);
    before = {b.node("ReadVariable", {count}, {}, "before")};
    b.node("AssignAdd", {count, b.constant(shape, 1)}, {}, "after", {before.node});
  }
  {
    const auto here = on(last_worker, plan.devices - 1);
    tripled = {b.node("Scale", {weighted}, {{"factor", 3.0}}, "tripled")};
    const Output at = b.placeholder("at", DType::kInt32, {2});
    const Output rows{b.node("Gather", {variable("table", {kRows, kColumns}), at}, {}, "rows")};
    const auto there = on(last_ps);
    b.node("Scale", {rows}, {{"factor", 2.0}}, "doubled");
  }
  {
    const auto here = on(last_ps);
    b.node("Add", {tripled, twice}, {}, "sum");
  }
  if (plan.jobs) {
    const auto here = on(ps);
    const Output jobs{b.node("FIFOQueue", {},
                             {{"component_types", std::string("int32")},
                              {"shapes", std::string("[1]")},
                              {"capacity", int64_t{2}},
                              {"container", container}},
                             "jobs")};
    b.node("QueueEnqueue", {jobs, b.placeholder("job", DType::kInt32, {1})}, {}, "put");
    b.node("QueueDequeue", {jobs}, {}, "take");
    b.node("QueueClose", {jobs}, {}, "close");
  }
  const auto here = on(worker);
  b.node("Scale", {before}, {{"factor", 1.0}}, "shown");
  return graph;
}

}  // namespace dtf::sim
