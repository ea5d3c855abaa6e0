#include "common/engine/session.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/engine/local_tasks.h"
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

SessionCounts Session::counts() const {
  MutexLock lock(counts_mutex_);
  return counts_;
}

}  // namespace dtf::engine
