#pragma once

// What the handles of <dtf/dtf.h> point to.

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
  std::exception_ptr failure;  // of what was said of it, for dtf_node_add()
};

namespace dtf::engine {
class Session;
}

namespace dtf::api {

// Errors: kBadConfig for a type that there isn't, or a negative dimension.
DType dtypeOf(dtf_dtype dtype);
Shape shapeOf(const int64_t* dims, size_t rank);

engine::Session& sessionOf(dtf_session& session);

}  // namespace dtf::api
