// Queues, TensorFlow's FIFOQueue: state that outlives a step, and that steps wait for. All ops are
// stateful: never merged, never folded.
//
//   op               inputs          attributes            outputs
//   FIFOQueue        -               component_types,      a handle of the queue
//                                    shapes string,
//                                    capacity int,
//                                    [shared_name, container string]
//   QueueEnqueue     queue, a value  -                     none; they become its last element, once
//                    per component                         it has room
//   QueueEnqueueMany queue, values   -                     none; likewise n elements, one after the
//                    [n, ..] each                          other
//   QueueDequeue     queue           -                     the components of its first element,
//                                                          once it has one
//   QueueDequeueMany queue           n int                 [n, ..] each: the first n elements'
//   components,
//                                                          once it has n
//   QueueSize        queue           -                     int32 []: how many it has
//   QueueClose       queue           [cancel_pending_-     none; rejects new elements; those that
//   already
//                                    enqueues bool]        wait still enter, unless cancelled
//
// An element has one tensor for each component. component_types is a list like 'float32, int32',
// shapes one like '[28, 28], []'; nodes that act on a queue take both from it. Like a variable, a
// queue is identified by its name: see standard_state_ops.cc.

#include <string>

#include "common/base/error.h"
#include "common/graph/queue.h"
#include "common/graph/shape_functions.h"
#include "common/graph/standard_ops.h"

namespace dtf::graph {
namespace {

using Type = AttributeDef::Type;
using Specs = std::vector<TensorSpec>;

// The output that represents a queue has no elements.
Specs inferQueue(std::span<const TensorSpec>, const Attributes& attributes) {
  queueComponents(attributes);
  const int64_t capacity = get<int64_t>(attributes, "capacity");
  if (capacity < 1)
    throw Error(ErrorCode::kBadConfig,
                "its capacity is " + std::to_string(capacity) + " elements; the least is 1");
  return {{DType::kUInt8, {0}}};
}

Specs batched(const Attributes& attributes, int64_t n) {
  Specs specs = queueComponents(attributes);
  const int64_t most = kQueueBatchMax / static_cast<int64_t>(specs.size());
  if (n < 1 || n > most)
    throw Error(ErrorCode::kBadConfig, "its batch has " + std::to_string(n) + " elements of " +
                                           std::to_string(specs.size()) +
                                           " components; the least is 1, the most " +
                                           std::to_string(most));
  for (TensorSpec& spec : specs) {
    std::vector<int64_t> dims = spec.shape.dims();
    dims.insert(dims.begin(), n);
    spec.shape = Shape(std::move(dims));
  }
  return specs;
}

void wantComponents(std::span<const TensorSpec> inputs, const Specs& components) {
  if (inputs.size() != components.size() + 1)
    throw Error(ErrorCode::kBadConfig, "it has " + std::to_string(inputs.size() - 1) +
                                           " values for an element of " +
                                           std::to_string(components.size()) + " components");
  for (size_t i = 0; i < components.size(); ++i)
    wantSame(inputs[i + 1], ("value " + std::to_string(i)).c_str(), components[i],
             "the queue's component");
}

Specs inferEnqueue(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  wantComponents(inputs, queueComponents(attributes));
  return {};
}

Specs inferEnqueueMany(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  if (inputs.size() < 2 || inputs[1].shape.rank() < 1)
    throw Error(ErrorCode::kBadConfig, "its values are to be [n, ..] for n elements");
  wantComponents(inputs, batched(attributes, inputs[1].shape.dim(0)));
  return {};
}

Specs inferDequeue(std::span<const TensorSpec>, const Attributes& attributes) {
  return queueComponents(attributes);
}

Specs inferDequeueMany(std::span<const TensorSpec>, const Attributes& attributes) {
  return batched(attributes, get<int64_t>(attributes, "n"));
}

Specs inferSize(std::span<const TensorSpec>, const Attributes&) {
  return {{DType::kInt32, {}}};
}

}  // namespace

void addQueueOps(OpCatalog& catalog) {
  const AttributeDef types{"component_types", Type::kString, false};
  const AttributeDef shapes{"shapes", Type::kString, false};
  catalog.add({"FIFOQueue",
               0,
               {{"component_types", Type::kString},
                {"shapes", Type::kString},
                {"capacity", Type::kInt},
                {"shared_name", Type::kString, false},
                {"container", Type::kString, false}},
               inferQueue,
               true});
  catalog.add({"QueueEnqueue", -1, {types, shapes}, inferEnqueue, true});
  catalog.add({"QueueEnqueueMany", -1, {types, shapes}, inferEnqueueMany, true});
  catalog.add({"QueueDequeue", 1, {types, shapes}, inferDequeue, true});
  catalog.add({"QueueDequeueMany", 1, {types, shapes, {"n", Type::kInt}}, inferDequeueMany, true});
  catalog.add({"QueueSize", 1, {types, shapes}, inferSize, true});
  catalog.add({"QueueClose",
               1,
               {types, shapes, {"cancel_pending_enqueues", Type::kBool, false}},
               noOutput,
               true});
}

}  // namespace dtf::graph
