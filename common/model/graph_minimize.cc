// The op `minimize` of a graph file.

#include <fmt/format.h>

#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/model/graph_file_schema.h"
#include "common/model/graph_reader.h"

namespace dtf::model {

using graph::Output;
using yaml::MapReader;
using yaml::YamlNode;

namespace {

constexpr char kDefaultName[] = "train";

}  // namespace

// Returns nullopt after a mistake, which is reported.
std::optional<MinimizeRequest> GraphReader::readRequest(const MapReader& reader) {
  std::string loss;
  if (!reader.text("loss", loss)) return std::nullopt;
  const std::optional<Output> output = findTensor(loss, reader.find("loss")->where());
  std::optional<std::vector<Output>> variables = tensors(reader, "variables");
  if (!output || !variables) return std::nullopt;
  if (reader.find("variables") != nullptr && variables->empty()) {
    report_.error(reader.find("variables")->where(),
                  "'variables' is empty: name those to train, or leave it out to train all that "
                  "the loss depends on");
    return std::nullopt;
  }
  MinimizeRequest request{.loss = *output,
                          .variables = *std::move(variables),
                          .prefix = builder_.namePrefix(),
                          .optimizer = reader.find("optimizer")};
  reader.text("global_step", request.global_step);
  return request;
}

// The nodes that a file can name read what the training returns: "train", "train/norm".
void GraphReader::readMinimize(const YamlNode& node) {
  if (!minimize_) {
    report_.error(node.key_place,
                  batch_
                      ? "'minimize' is for graph files: a job has an 'optimizer', and its loss is "
                        "model.loss"
                      : "a function has no variables to train: write 'minimize' among the ops "
                        "of the file itself");
    return leaveGap();
  }
  const MapReader reader(node, kGraphMinimizeTable, "minimize", report_);
  const std::optional<MinimizeRequest> request = readRequest(reader);
  if (!request) return leaveGap();
  std::string name = kDefaultName;
  reader.text("name", name);
  try {
    const std::optional<MinimizeNodes> made = minimize_(graph_, *request, report_);
    if (!made) return leaveGap();
    const auto nameNode = [&](Output output, const std::string& as) {
      const graph::NodeId id = builder_.node("Identity", {output}, {}, as);
      marks_[graph_.node(id).name] = report_.markOf(node.key_place);
    };
    nameNode(made->train, name);
    if (made->norm) nameNode(*made->norm, name + "/norm");
    DTF_CHECK(graph_.find(builder_.namePrefix() + name) != nullptr);
  } catch (const Error& error) {
    report_.error(node.key_place, error.message());
    leaveGap();
  }
}

}  // namespace dtf::model
