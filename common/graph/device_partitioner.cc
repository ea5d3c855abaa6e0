#include "common/graph/device_partitioner.h"

#include <cctype>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/graph/device_name.h"
#include "common/graph/transfer.h"

namespace dtf::graph {
namespace {

// Returns "cpu_1", which distinguishes a device within its task.
std::string shortName(const std::string& device) {
  const DeviceName name = DeviceName::parse(device);
  DTF_CHECK_MSG(name.type && name.index, "the device '" + device + "' is not complete");
  std::string type = *name.type;
  for (char& c : type) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return type + "_" + std::to_string(*name.index);
}

// Cuts one part.
// Borrows: the part, for one call of partitionByDevice().
class DevicePartitioner {
 public:
  explicit DevicePartitioner(const Graph& whole) : whole_(whole) {}

  std::map<std::string, Graph> run() {
    for (const Node& node : whole_.nodes()) homes_.push_back(indexOf(node.device));
    for (const Node& node : whole_.nodes()) add(node);
    std::map<std::string, Graph> parts;
    for (Part& part : parts_) parts.emplace(std::move(part.device), std::move(part.graph));
    return parts;
  }

 private:
  using Reader = size_t;  // index of the reading part
  struct Part {
    std::string device;
    std::string short_name;
    Graph graph;
  };

  size_t indexOf(const std::string& device) {
    const auto [known, is_new] = indices_.try_emplace(device, parts_.size());
    if (is_new) parts_.push_back({device, shortName(device), Graph(whole_.catalog())});
    return known->second;
  }

  size_t home(NodeId node) const {
    DTF_CHECK(node.value >= 0 && std::cmp_less(node.value, homes_.size()));
    return homes_[static_cast<size_t>(node.value)];
  }

  void add(const Node& node) {
    DTF_CHECK(std::cmp_equal(copies_.size(), node.id.value));
    const size_t here = home(node.id);
    NodeDef def{.name = node.name,
                .op = node.op,
                .inputs = {},
                .attributes = node.attributes,
                .control_inputs = {},
                .device = node.device};
    for (const Output& input : node.inputs) def.inputs.push_back(read(input, here));
    for (const NodeId before : node.control_inputs) {
      def.control_inputs.push_back(waitFor(before, here));
    }
    copies_.push_back(parts_[here].graph.addNode(std::move(def)));
  }

  NodeId copyOf(NodeId node) const { return copies_[static_cast<size_t>(node.value)]; }

  Output read(const Output& source, Reader reader) {
    const Output local{copyOf(source.node), source.index};
    if (home(source.node) == reader) return local;
    const auto [known, is_new] = received_.try_emplace({source, reader});
    if (is_new) {
      const std::string edge = whole_.node(source.node).name + ":" + std::to_string(source.index);
      known->second = transfer(source.node, local, reader, edge);
    }
    return known->second;
  }

  NodeId waitFor(NodeId before, Reader reader) {
    if (home(before) == reader) return copyOf(before);
    const auto [known, is_new] = waits_.try_emplace({before, reader});
    if (is_new) {
      const std::string& name = whole_.node(before).name;
      Part& source = parts_[home(before)];
      const Output done = addDone(
          source.graph, copyOf(before),
          whole_.uniqueName(name + "/done_for_" + parts_[reader].short_name), source.device);
      known->second = transfer(before, done, reader, "^" + name).node;
    }
    return known->second;
  }

  Output transfer(NodeId from, const Output& local, Reader reader, const std::string& edge) {
    Part& source = parts_[home(from)];
    Part& target = parts_[reader];
    return addTransfer(source.graph, local, target.graph,
                       {.edge = edge,
                        .source_device = source.device,
                        .reader_device = target.device,
                        .send_name = whole_.uniqueName(edge + "/send_to_" + target.short_name),
                        .recv_name = whole_.uniqueName(edge + "/recv_on_" + target.short_name)});
  }

  const Graph& whole_;
  std::map<std::string, size_t> indices_;
  std::vector<Part> parts_;     // in the order of first use
  std::vector<size_t> homes_;   // by NodeId
  std::vector<NodeId> copies_;  // by NodeId, in the part of its home
  std::map<std::pair<Output, Reader>, Output> received_;
  std::map<std::pair<NodeId, Reader>, NodeId> waits_;
};

}  // namespace

std::map<std::string, Graph> partitionByDevice(const Graph& part) {
  return DevicePartitioner(part).run();
}

}  // namespace dtf::graph
