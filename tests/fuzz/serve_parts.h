#pragma once

// Parts of plans and tensors, made of a call's arguments: as a client could register and send them,
// with one error if the bytes choose it.

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "common/engine/task_part.h"
#include "common/wire/parts.capnp.h"
#include "common/wire/session/part_codec.h"
#include "tests/fuzz/arguments.h"

namespace dtf::fuzz {

// Shared by all plans, so that the parts of one plan on two tasks sometimes fit.
inline constexpr uint32_t kEdges = 4;

// A number of elements: few of them, or more than a task has room for.
int64_t elementsOf(Arguments& arguments);

// A part of `self` of at most a dozen nodes: feeds, variables of a few names, arithmetic, an index
// that may be out of range, tensors from and for the other tasks.
std::shared_ptr<const engine::TaskPart> makePart(Arguments& arguments, TaskId self);

// A client's knowledge of a part that it has registered. Value type.
struct Known {
  std::vector<graph::TensorSpec> feeds;
  std::map<uint32_t, uint64_t> received;  // bytes, by edge
};
Known knownOf(const engine::TaskPart& part);

// Processes of the other tasks, present or past.
wire::Processes processesOf(Arguments& arguments);

// One like `spec`, or not.
void fillTensor(Arguments& arguments, const graph::TensorSpec& spec,
                schema::Tensor::Builder tensor);
// Its elements, as many as `bytes` or not.
template <class Init>
void fillBytes(Arguments& arguments, uint64_t bytes, const Init& init) {
  const uint8_t kind = arguments.byte();
  const uint32_t blobs = kind < 200 ? 1 : kind % 4;
  capnp::List<capnp::Data>::Builder list = init(blobs);
  for (uint32_t i = 0; i < blobs; ++i) {
    // Two halves are whole, too.
    const uint64_t size = kind >= 250 ? arguments.byte() : bytes / blobs;
    auto blob = list.init(i, static_cast<uint32_t>(size));
    if (size > 0) std::memset(blob.begin(), kind % 16, size);
  }
}

}  // namespace dtf::fuzz
