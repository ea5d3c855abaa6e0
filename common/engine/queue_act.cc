#include "common/engine/queue_act.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

#include "common/base/check.h"

namespace dtf::engine {
namespace {

using graph::Graph;
using graph::Node;

size_t countOf(const Graph& part, const Node& node) {
  if (node.op == "QueueDequeueMany") return static_cast<size_t>(node.attribute<int64_t>("n"));
  if (node.op == "QueueEnqueueMany")
    return static_cast<size_t>(part.spec(node.inputs[1]).shape.dim(0));
  return 1;
}

// Shortens a name: clients may use many names of thousands of characters.
std::string clipped(const std::string& name) {
  constexpr size_t kNameMax = 64;
  return name.size() <= kNameMax ? name : name.substr(0, kNameMax) + "..";
}

}  // namespace

QueueAct::Kind QueueAct::kindOf(const Node& node) {
  static const std::map<std::string_view, Kind> kKinds = {
      {"QueueEnqueue", Kind::kEnqueue}, {"QueueEnqueueMany", Kind::kEnqueueMany},
      {"QueueDequeue", Kind::kDequeue}, {"QueueDequeueMany", Kind::kDequeueMany},
      {"QueueSize", Kind::kSize},       {"QueueClose", Kind::kClose}};
  const auto known = kKinds.find(node.op);
  DTF_CHECK_MSG(known != kKinds.end(), node.name);
  return known->second;
}

QueueAct::QueueAct(const Graph& part, const Node& node)
    : kind_(kindOf(node)),
      op_(node.op),
      node_(node.name),
      count_(countOf(part, node)),
      cancels_(kind_ == Kind::kClose && node.attribute<bool>("cancel_pending_enqueues")),
      outputs_(node.outputs) {}

FifoQueue::Wait QueueAct::start(FifoQueue& queue,
                                std::span<const std::span<const std::byte>> inputs,
                                FifoQueue::Done done) const {
  switch (kind_) {
    case Kind::kEnqueue:
    case Kind::kEnqueueMany:
      return queue.enqueue(elementsOf(queue, inputs), std::move(done));
    case Kind::kDequeue:
    case Kind::kDequeueMany:
      return queue.dequeue(count_, std::move(done));
    case Kind::kSize: {
      FifoQueue::Elements size(1);
      size[0].components.emplace_back(outputs_[0].dtype, outputs_[0].shape);
      size[0].components[0].as<int32_t>()[0] = static_cast<int32_t>(
          std::min(queue.size(), static_cast<size_t>(std::numeric_limits<int32_t>::max())));
      done(std::move(size));
      return 0;
    }
    case Kind::kClose:
      queue.close(cancels_);
      done(FifoQueue::Elements());
      return 0;
  }
  return 0;
}

// Row i of each input belongs to element i.
FifoQueue::Elements QueueAct::elementsOf(const FifoQueue& queue,
                                         std::span<const std::span<const std::byte>> inputs) const {
  FifoQueue::Elements elements;
  elements.reserve(count_);
  for (size_t i = 0; i < count_; ++i) {
    elements.push_back(queue.newElement());
    std::vector<Tensor>& components = elements.back().components;
    DTF_CHECK(inputs.size() == components.size());
    for (size_t c = 0; c < components.size(); ++c) {
      const size_t bytes = components[c].bytes();
      DTF_CHECK(inputs[c].size() == count_ * bytes);
      std::ranges::copy(inputs[c].subspan(i * bytes, bytes), components[c].data());
    }
  }
  return elements;
}

// Copies the elements into a batch; both exist for a moment.
QueueAct::Result QueueAct::finish(FifoQueue::Elements elements) const {
  Result result;
  if (kind_ == Kind::kDequeueMany) {
    DTF_CHECK(elements.size() == count_);
    for (size_t c = 0; c < outputs_.size(); ++c) {
      Tensor batch(outputs_[c].dtype, outputs_[c].shape);
      std::byte* next = batch.data();
      for (const FifoQueue::Element& element : elements) {
        const Tensor& row = element.components[c];
        next = std::copy_n(row.data(), row.bytes(), next);
      }
      DTF_CHECK(next == batch.data() + batch.bytes());
      result.outputs.push_back(std::move(batch));
    }
  }
  for (FifoQueue::Element& element : elements) {
    if (kind_ != Kind::kDequeueMany) result.outputs = std::move(element.components);
    result.shares.push_back(std::move(element.share));
  }
  DTF_CHECK(result.outputs.size() == outputs_.size());
  return result;
}

std::string QueueAct::awaited(const FifoQueue& queue) const {
  const bool enters = kind_ == Kind::kEnqueue || kind_ == Kind::kEnqueueMany;
  const std::string has = "the queue '" + clipped(queue.name()) + "', which has " +
                          std::to_string(queue.size()) + " of at most " +
                          std::to_string(queue.spec().capacity);
  return "node '" + clipped(node_) + "' (" + op_ + ") waits for " + (enters ? "room for " : "") +
         std::to_string(count_) + " elements " + (enters ? "in " : "of ") + has;
}

}  // namespace dtf::engine
