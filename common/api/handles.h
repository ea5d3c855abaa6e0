#pragma once

// The objects behind the handles of <dtf/dtf.h>.

#include <atomic>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "common/api/dtf/dtf.h"
#include "common/base/check.h"
#include "common/graph/builder.h"
#include "common/graph/graph.h"
#include "common/graph/op_def.h"
#include "common/tensor/tensor.h"

struct dtf_tensor {
  dtf::Tensor tensor;
};

struct dtf_graph {
  dtf::graph::Graph graph{dtf::graph::standardOps()};
};

struct dtf_node {
  dtf_graph* graph = nullptr;
  dtf::graph::NodeDef def;     // its name may be empty
  std::exception_ptr failure;  // of its description, for dtf_node_add()
};

namespace dtf::engine {
struct Feed;
class Session;
}  // namespace dtf::engine

namespace dtf::api {

// Errors: kBadConfig for an unknown type, or a negative dimension.
DType dtypeOf(dtf_dtype dtype);
Shape shapeOf(const int64_t* dims, size_t rank);

graph::Output toOutput(dtf_output output);
// Errors: kBadConfig if the graph has no such output.
void checkHas(const graph::Graph& graph, dtf_output output);

engine::Session& sessionOf(dtf_session& session);
// As dtf_session_open(). The caller owns the session. Another thread sets `gives_up`, which may be
// null, to end the wait for the tasks within a second: kUnavailable.
dtf_session* openSession(const graph::Graph& graph, const char* const* targets, size_t count,
                         const dtf_session_options* options,
                         std::shared_ptr<const std::atomic<bool>> gives_up = nullptr);
// Errors: kUsage for a step without fetches and targets.
void checkAsks(size_t fetch_count, size_t target_count);
// Borrows the values.
std::vector<engine::Feed> feedsOf(const dtf_feed* feeds, size_t count);
// Gives a new tensor for each value.
void giveValues(std::vector<Tensor> got, dtf_tensor** values);

}  // namespace dtf::api
