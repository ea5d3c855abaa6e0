#include "common/engine/session.h"

#include <algorithm>
#include <set>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/engine/local_tasks.h"
#include "common/engine/resource_key.h"
#include "common/graph/device_placer.h"
#include "common/graph/prune.h"

namespace dtf::engine {
namespace {

using graph::Graph;
using graph::TensorSpec;

std::string text(DType dtype, const Shape& shape) {
  return std::string(dtypeName(dtype)) + shape.str();
}

void checkFits(const std::string& what, const TensorSpec& spec, const Tensor& value) {
  if (value.dtype() == spec.dtype && value.shape() == spec.shape) return;
  throw Error(ErrorCode::kBadConfig, what + " is " + text(spec.dtype, spec.shape) +
                                         ", but was given " + text(value.dtype(), value.shape()));
}

graph::DevicePlacerOptions placerOptions(const Tasks& tasks, const SessionOptions& options) {
  DTF_CHECK(!tasks.devices().empty());
  return {.devices = tasks.devices(),
          .preferred = tasks.devices()[0],
          .soft = options.soft_placement,
          .colocations = options.colocations,
          .lines = options.lines,
          .can_run = [&tasks](const graph::Node& node, const graph::DeviceName& name) {
            return tasks.canRun(node, name);
          }};
}

// Rejects ops that only a session inserts.
void refuseInternal(const Graph& graph) {
  for (const graph::Node& node : graph.nodes()) {
    if (node.op[0] != '_') continue;
    throw Error(ErrorCode::kBadConfig, "node '" + node.name + "': " + node.op +
                                           " is dtf's own op, which partitions insert");
  }
}

// A graph of acts on variables alone, each on the device of its variable.
class VariablesGraph {
 public:
  explicit VariablesGraph(const Graph& placed) : graph_(placed.catalog()) {
    std::set<ResourceKey> known;
    for (const graph::Node& node : placed.nodes()) {
      // Of nodes that share a variable, the first decides.
      if (node.op != "Variable" || !known.insert(ResourceKey::of(node)).second) continue;
      const int64_t stream = node.attribute<int64_t>("stream");
      variables_.push_back({add(node.name, "Variable", {}, node.attributes, node.device), node.name,
                            node.attribute<std::string>("initializer"),
                            stream != 0 ? stream - 1 : graph::variablePlace(placed, node.id)});
    }
  }

  struct Variable {
    graph::Output output;
    std::string name, initializer;
    int64_t stream = 0;  // of its initial value
  };
  const std::vector<Variable>& variables() const { return variables_; }

  graph::Output add(const std::string& name, const char* op, std::vector<graph::Output> inputs,
                    graph::Attributes attributes, const std::string& device) {
    return {graph_.addNode({.name = graph_.uniqueName(name),
                            .op = op,
                            .inputs = std::move(inputs),
                            .attributes = std::move(attributes),
                            .device = device})};
  }
  // Returns the name of an act on the variable.
  std::string act(const Variable& variable, const char* op, std::vector<graph::Output> inputs,
                  graph::Attributes attributes) {
    inputs.insert(inputs.begin(), variable.output);
    const std::string device = graph_.node(variable.output.node).device;
    const graph::Output made =
        add(variable.name + "/" + op, op, std::move(inputs), std::move(attributes), device);
    return graph_.node(made.node).name;
  }
  const Graph& graph() const { return graph_; }

 private:
  Graph graph_;
  std::vector<Variable> variables_;
};

// Returns the global steps of synchronous replicas. They begin last: that voids each gradient that
// is under way from the values before.
std::set<ResourceKey> replicaCounters(const Graph& graph) {
  std::set<ResourceKey> counters;
  for (const graph::Node& node : graph.nodes())
    if (node.op == graph::kArriveOp)
      counters.insert(ResourceKey::of(graph.node(node.inputs.at(0).node)));
  return counters;
}

Graph placed(const Graph& graph, const Tasks& tasks, const SessionOptions& options) {
  refuseInternal(graph);
  return graph::withDevices(graph, placeOnDevices(graph, placerOptions(tasks, options)));
}

}  // namespace

Session::Session(const Graph& graph, std::unique_ptr<Tasks> tasks, SessionOptions options)
    : options_(std::move(options)),
      tasks_(std::move(tasks)),
      graph_(placed(graph, *tasks_, options_)) {
  DTF_CHECK(options_.plans_max > 0);
}
Session::Session(const Graph& graph, const std::vector<SessionDevice>& devices,
                 SessionOptions options)
    : Session(graph, std::make_unique<LocalTasks>(std::make_shared<LocalProcess>(devices)),
              std::move(options)) {}
Session::~Session() = default;

std::vector<Tensor> Session::run(std::span<const Feed> feeds, std::span<const std::string> fetches,
                                 std::span<const std::string> targets, RunMetadata* metadata) {
  std::vector<Feed> sorted(feeds.begin(), feeds.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const Feed& a, const Feed& b) { return a.tensor < b.tensor; });
  Signature signature;
  for (const Feed& feed : sorted) signature.feeds.push_back(feed.tensor);
  signature.fetches.assign(fetches.begin(), fetches.end());
  signature.targets.assign(targets.begin(), targets.end());
  std::sort(signature.targets.begin(), signature.targets.end());
  const std::shared_ptr<Registered> plan = planOf(signature);
  return runPlan(*plan, signature, sorted, metadata);
}

std::shared_ptr<Session::Registered> Session::planOf(const Signature& signature) {
  MutexLock lock(plans_mutex_);
  const auto known = std::find_if(plans_.begin(), plans_.end(),
                                  [&](const Entry& entry) { return entry.signature == signature; });
  if (known != plans_.end()) {
    plans_.splice(plans_.begin(), plans_, known);
    return known->plan;
  }
  auto made = std::make_shared<Registered>();
  plans_.push_front({signature, made});
  if (plans_.size() > options_.plans_max) plans_.pop_back();
  return made;
}

void Session::make(Registered& registered, const Signature& signature) {
  DTF_CHECK(registered.parts == nullptr);
  registered.plan = makePlan(graph_, signature, *tasks_);
  registered.parts = tasks_->registerPlan(std::exchange(registered.plan.parts, {}));
  MutexLock lock(counts_mutex_);
  ++counts_.plans;
}

std::vector<Tensor> Session::runPlan(Registered& registered, const Signature& signature,
                                     std::span<const Feed> feeds, RunMetadata* metadata) {
  MutexLock running(registered.running);
  if (registered.parts == nullptr) make(registered, signature);
  for (size_t i = 0; i < feeds.size(); ++i) {
    DTF_CHECK(feeds[i].value != nullptr);
    checkFits("'" + feeds[i].tensor + "'", registered.plan.feed_specs[i], *feeds[i].value);
  }
  StepFeeds fed;
  for (const std::vector<size_t>& part : registered.plan.feeds) {
    fed.emplace_back();
    for (const size_t feed : part) fed.back().push_back(feeds[feed].value);
  }
  uint64_t number = 0;
  {
    MutexLock lock(counts_mutex_);
    number = next_step_++;
  }
  StepResult result = registered.parts->run(number, fed, metadata != nullptr);
  if (metadata != nullptr) metadata->traces = std::move(result.traces);
  std::vector<Tensor> values;
  for (const Plan::Fetch& fetch : registered.plan.fetches) {
    values.push_back(std::move(result.fetches[fetch.part][fetch.index]));
  }
  if (!registered.is_of_user) return values;
  MutexLock lock(counts_mutex_);
  ++counts_.steps;
  counts_.kernels += result.kernels;
  return values;
}

void Session::setVariable(std::string_view name, const Tensor& value) {
  const graph::Node& node = graph_.node(graph::findNode(graph_, name));
  if (node.op != "Variable") {
    throw Error(ErrorCode::kBadConfig, "'" + node.name + "' is a " + node.op + ", not a Variable");
  }
  checkFits("the variable '" + node.name + "'", node.outputs[0], value);
  tasks_->setVariable(node, value);
}

std::vector<Tensor> Session::runOnce(const Graph& graph, const Signature& signature,
                                     std::span<const Feed> feeds) {
  Registered once;
  once.is_of_user = false;
  {
    MutexLock running(once.running);
    once.plan = makePlan(graph, signature, *tasks_);
    once.parts = tasks_->registerPlan(std::exchange(once.plan.parts, {}));
  }
  return runPlan(once, signature, feeds, nullptr);
}

void Session::initialize(uint64_t seed) {
  VariablesGraph whole(graph_);
  if (whole.variables().empty()) return;
  const graph::Output drawn_from =
      whole.add("seed", "Placeholder", {}, {{"dtype", DType::kInt64}, {"shape", Shape()}},
                tasks_->devices()[0].str());
  const std::set<ResourceKey> counters = replicaCounters(graph_);
  Signature first, last;
  first.feeds = last.feeds = {whole.graph().node(drawn_from.node).name};
  for (const VariablesGraph::Variable& variable : whole.variables()) {
    const bool is_counter =
        counters.contains(ResourceKey::of(whole.graph().node(variable.output.node)));
    (is_counter ? last : first)
        .targets.push_back(
            whole.act(variable, "InitializeVariable", {drawn_from},
                      {{"initializer", variable.initializer}, {"stream", variable.stream}}));
  }
  Tensor value(DType::kInt64, Shape());
  value.as<int64_t>()[0] = static_cast<int64_t>(seed);
  const Feed feed{first.feeds[0], &value};
  for (Signature* const signature : {&first, &last}) {
    if (signature->targets.empty()) continue;
    std::sort(signature->targets.begin(), signature->targets.end());
    runOnce(whole.graph(), *signature, {&feed, 1});
  }
}

std::vector<std::string> Session::uninitialized() {
  VariablesGraph whole(graph_);
  Signature signature;
  for (const VariablesGraph::Variable& variable : whole.variables())
    signature.fetches.push_back(whole.act(variable, "IsVariableInitialized", {}, {}));
  if (signature.fetches.empty()) return {};
  const std::vector<Tensor> values = runOnce(whole.graph(), signature, {});
  std::vector<std::string> names;
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i].as<uint8_t>()[0] == 0) names.push_back(whole.variables()[i].name);
  return names;
}

SessionCounts Session::counts() const {
  MutexLock lock(counts_mutex_);
  return counts_;
}

}  // namespace dtf::engine
