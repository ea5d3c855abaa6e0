#include "common/model/graph_file_schema.h"

#include <algorithm>
#include <vector>

namespace dtf::model {

using graph::AttributeDef;
using yaml::Key;

namespace {

constexpr int64_t kDimensionMax = int64_t{1} << 31;

constexpr Key kFileKeys[] = {
    yaml::required(yaml::list("ops", "each after the ops that it reads")),
    yaml::list("functions", "subgraphs that If and While call, each after the ones that it calls"),
    yaml::map("run", "fetches and feeds of a step"),
    yaml::map("pins", "devices by op: they override the op's own"),
    yaml::boolean("soft_placement",
                  "an op may run on another device of its task if its own is missing"),
};
constexpr Key kCheckpointKeys[] = {
    yaml::number("every_seconds", yaml::kSeconds, "default 600, or none when every_steps is given"),
    yaml::whole("every_steps", 1, yaml::kCountMax, "global steps"),
    yaml::whole("keep", 0, 1'000'000, "number of newest checkpoints to keep, 0: all; default 5"),
};
constexpr Key kSummariesKeys[] = {
    yaml::required(yaml::list("scalars", "tensors of one float32, by name")),
    yaml::number("every_seconds", yaml::kSeconds, "default 120, or none when every_steps is given"),
    yaml::whole("every_steps", 1, yaml::kCountMax, "global steps"),
};
constexpr Key kFeedKeys[] = {
    yaml::required(yaml::choice("data", "features|labels", "", "")),
    yaml::whole("tower", 0, kTowersMax - 1, "each has a batch of its own in each step; default 0"),
};
constexpr Key kMinimizeKeys[] = {
    yaml::required(yaml::text("loss", "a scalar")),
    yaml::textOrMap("optimizer", "as train.optimizer of a job; default gradient_descent"),
    yaml::list("variables", "to train; default: all that the loss depends on"),
    yaml::text("name", "of the op that runs a step, the target; default train"),
    yaml::text("global_step", "the counter of its steps; default global_step"),
};
constexpr Key kRunKeys[] = {
    yaml::list("targets", "ops that run in each step"),
    yaml::list("fetches", "tensors to print"),
    yaml::map("feeds", "values by tensor: numbers, or features or labels of `data`, or a map"),
    yaml::map("data", "examples, like train.data.train of a job; each step has a batch"),
    yaml::whole("steps", 1, yaml::kCountMax, "default 1; with checkpoint: global steps"),
    yaml::whole("seed", 0, yaml::kSeedMax,
                "seed of the initial values and of the order of the data; default 1"),
    yaml::text("log_dir", "folder of the checkpoints and event files, relative to this file"),
    yaml::map("checkpoint", "save, and go on from the newest one; default: neither"),
    yaml::map("summaries", "for TensorBoard; default: none"),
};
constexpr Key kScopeKeys[] = {
    yaml::text("name", "in front of the names within"),
    yaml::text("device", "device of the ops within that name none"),
    yaml::required(yaml::list("ops", "")),
};
constexpr Key kGradientKeys[] = {
    yaml::required(yaml::text("loss", "a scalar")),
    yaml::required(yaml::list("of", "variables; the gradient of `w` is called NAME/w")),
    yaml::text("name", "default: gradient"),
};
constexpr Key kFunctionKeys[] = {
    yaml::required(yaml::text("name", "by which ops call it")),
    yaml::list("parameters", "tensors that it is called with, in this order"),
    yaml::required(yaml::list("ops", "each after the ops that it reads; none with a state")),
    yaml::required(yaml::list("results", "tensors that it returns, in this order")),
};
constexpr Key kParameterKeys[] = {
    yaml::required(yaml::text("name", "by which its ops read it")),
    yaml::choice("dtype", "float32|uint8|int32|int64", "", "default float32"),
    [] {
      Key shape = yaml::list("shape", "default: a scalar");
      shape.whole_max = kDimensionMax;
      return shape;
    }(),
};

// Whether files may use the op: dtf inserts the others, or a training job's optimizer runs them.
bool isForPeople(std::string_view op) {
  return op[0] != '_' && op != "ApplyGradient" && op != "ApplySparseGradient";
}

}  // namespace

const yaml::Table kGraphFileTable{"graph", kFileKeys};
const yaml::Table kGraphRunTable{"graph.run", kRunKeys};
const yaml::Table kGraphScopeTable{"graph.ops.N.scope", kScopeKeys};
const yaml::Table kGraphGradientTable{"graph.ops.N.gradients", kGradientKeys};
const yaml::Table kGraphMinimizeTable{"graph.ops.N.minimize", kMinimizeKeys};
const yaml::Table kGraphCheckpointTable{"graph.run.checkpoint", kCheckpointKeys};
const yaml::Table kGraphSummariesTable{"graph.run.summaries", kSummariesKeys};
const yaml::Table kGraphFeedTable{"graph.run.feeds.TENSOR", kFeedKeys};
const yaml::Table kGraphFunctionTable{"graph.functions.N", kFunctionKeys};
const yaml::Table kGraphParameterTable{"graph.functions.N.parameters.M", kParameterKeys};

const yaml::Table& graphOpTable() {
  static const std::vector<Key> keys = [] {
    std::vector<Key> all = {yaml::map("scope", ""), yaml::map("gradients", ""),
                            yaml::map("minimize", "")};
    for (const std::string_view op : graph::standardOps().names())
      if (isForPeople(op)) all.push_back(yaml::map(op, ""));
    return all;
  }();
  static const yaml::Table table{"graph.ops.N", keys};
  return table;
}

Key graphKeyOf(const AttributeDef& attribute) {
  const std::string_view name = attribute.name;
  Key key;
  switch (attribute.type) {
    case AttributeDef::Type::kBool:
      key = yaml::boolean(name, "");
      break;
    case AttributeDef::Type::kInt:
      key = yaml::whole(name, -yaml::kCountMax, yaml::kCountMax, "");
      break;
    case AttributeDef::Type::kDouble:
      key = yaml::number(name, {-1e38, 1e38, false, false}, "");
      break;
    case AttributeDef::Type::kString:
      key = yaml::text(name, "");
      break;
    case AttributeDef::Type::kDType:
      key = yaml::choice(name, "float32|uint8|int32|int64", "", "");
      break;
    case AttributeDef::Type::kShape:
      key = yaml::list(name, "");
      key.whole_max = kDimensionMax;
      break;
    case AttributeDef::Type::kFunction:
      key = yaml::text(name, "");  // a name from `functions`
      break;
  }
  key.required = attribute.required;
  return key;
}

std::string_view waitsForKey(const graph::OpDef& op) {
  const bool taken =
      std::any_of(op.attributes.begin(), op.attributes.end(),
                  [](const AttributeDef& attribute) { return attribute.name == "after"; });
  return taken ? "control_inputs" : "after";
}

}  // namespace dtf::model
