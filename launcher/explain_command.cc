// `dtf-launch explain`: the model and its placement, without starting anything.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/json.h"
#include "common/base/print.h"
#include "common/base/text.h"
#include "common/cluster/address.h"
#include "common/exchange/transfer_plan.h"
#include "common/graph/placer.h"
#include "common/model/model_table.h"
#include "common/model_files/trained_model.h"
#include "common/replication/membership.h"
#include "common/replication/replication_rules.h"
#include "common/runtime/computing_device.h"
#include "common/runtime/cpu_device.h"
#include "common/runtime/cpu_kernels.h"
#include "common/train/initial_values.h"
#include "common/train/job_check.h"
#include "common/train/kernel_choices.h"
#include "common/train/model_part.h"
#include "common/train/tower.h"
#include "launcher/commands.h"
#include "launcher/output.h"
#include "launcher/step_graph.h"

namespace dtf::launcher {

namespace {

Json layersOf(const model::ModelTable& table) {
  Json layers = Json::array();
  for (const model::LayerRow& row : table.layers)
    layers.push_back(Json{{"name", row.path},
                          {"settings", row.text},
                          {"depth", row.depth},
                          {"output", row.output.dims()},
                          {"parameters", row.parameters},
                          {"flops", row.flops}});
  return layers;
}

Json variablesOf(const graph::Placement& placement) {
  Json variables = Json::array();
  for (const graph::PlacedVariable& variable : placement.variables) {
    Json parts = Json::array();
    for (const graph::VariablePart& part : variable.parts)
      parts.push_back(Json{{"ps", part.ps_task}, {"begin", part.begin}, {"count", part.count}});
    variables.push_back(Json{{"name", variable.name},
                             {"shape", variable.shape.dims()},
                             {"gradient_bytes_max", variable.gradientBytesMax()},
                             {"parts", parts}});
    if (variable.gradient_rows_max)
      variables.back()["gradient_rows_max"] = *variable.gradient_rows_max;
  }
  return variables;
}

// What the chief does in a step.
struct ChiefStep {
  size_t towers = 1;
  engine::TaskPart part;
  runtime::StepPlan plan;  // of one tower: the others run the same, and so do the other workers
};

ChiefStep stepOf(const cluster::JobSpec& job, train::KernelChoices& choices) {
  const size_t towers = cluster::devicesOf(job.cluster.worker.at(kChief.index)).size();
  runtime::ComputePool pool(
      runtime::threadsOfEach(threadsOf(job.cluster).at(kChief.index), towers));
  runtime::KernelTable kernels;
  runtime::registerCpuKernels(kernels, {bestIsa(), &pool}, choices.rule());
  const cluster::TrainSpec train = train::shareOf(*job.train, towers);
  const model::ModelGraph model = train::trainingGraphOf(train);
  const graph::Placement placement =
      train::placeModel(model.graph, train::placementOf(train), job.cluster, kChief.index);
  runtime::CpuDevice cpu;
  engine::TaskPart part = train::trainingPart(model, placement, kChief.index, {&cpu, &kernels});
  runtime::StepPlan plan =
      runtime::planStep(part.graph, part.fetches, cpu.type(), kernels, {.known = &part.folded});
  return {towers, std::move(part), std::move(plan)};
}

Json kernelsOf(const runtime::StepPlan& plan) {
  Json kernels = Json::array();
  for (const runtime::StepPlan::Row& row : plan.kernels) {
    kernels.push_back(Json{{"op", row.op}, {"name", row.name}});
    if (!row.way.empty()) kernels.back()["way"] = row.way;
  }
  return kernels;
}

// Those that could go several ways, and how many others there are.
std::string kernelsText(const runtime::StepPlan& plan, const std::string& chosen_by) {
  size_t width = 6;
  for (const runtime::StepPlan::Row& row : plan.kernels)
    if (!row.way.empty()) width = std::max(width, row.name.size());
  std::string text = fmt::format("kernels of a step: {}, {}; convolutions are chosen by {}\n",
                                 plan.kernels.size(), isaName(bestIsa()), chosen_by);
  std::map<std::string, int> others;
  for (const runtime::StepPlan::Row& row : plan.kernels) {
    if (row.way.empty())
      ++others[row.op];
    else
      text += fmt::format("  {:<{}}  {:<9} {}\n", row.name, width, row.way, row.op);
  }
  std::string counts;
  for (const auto& [op, count] : others)
    counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", op, count);
  return counts.empty() ? text : text + fmt::format("  ops with one kernel each: {}\n", counts);
}

// Of all ps, as `check` counts it.
uint64_t psBytes(const cluster::JobSpec& job, const model::ModelTable& table) {
  return train::psCopies(job).all() * table.parameters * sizeof(float);
}

std::string psMemoryText(const cluster::JobSpec& job, uint64_t bytes) {
  const train::PsCopies copies = train::psCopies(job);
  std::string text = fmt::format(
      "memory of all {}: {}: {} of {} copies of the parameters, {} of the optimizer's slots",
      job.cluster.shardHosts().workers > 0 ? "shards" : "ps", bytesText(copies.all() * bytes),
      bytesText(copies.values * bytes), copies.values, bytesText(copies.slots * bytes));
  if (job.durability.kind == cluster::Durability::kSnapshot)
    text += fmt::format(", {} of two snapshots in /dev/shm", bytesText(copies.durability * bytes));
  if (job.durability.kind == cluster::Durability::kReplica)
    text += fmt::format(", {} of replicas", bytesText(copies.durability * bytes));
  return text + "\n";
}

std::string memoryText(const cluster::JobSpec& job, const model::ModelTable& table,
                       const model::ModelGraph& graph, const ChiefStep& step) {
  const uint64_t bytes = table.parameters * sizeof(float);
  const std::string towers = towersText(job, kChief.index);
  return (towers.empty() ? "" : fmt::format("{}: {}\n", kChief.name(), towers)) +
         fmt::format(
             "memory of a worker: {} for a step of {} examples, {} of parameters, {} of "
             "gradients\n",
             bytesText(step.towers * step.plan.planned_bytes), job.train->data.batch_size,
             bytesText(bytes),
             bytesText(step.towers * model::denseGradientElements(graph) * sizeof(float))) +
         psMemoryText(job, bytes);
}

// The plan of the chief and a shard, as far as the files tell it.
exchange::TransferPlan transferOf(const cluster::JobSpec& job, const arena::ParameterLayout& layout,
                                  uint32_t ps_task) {
  const cluster::TrainSpec& train = *job.train;
  const auto workers = static_cast<uint32_t>(job.cluster.worker.size());
  exchange::JobTransfers of_job = exchange::transfersOf(
      replication::completeReplication(train.replication, workers), kChief.index);
  const cluster::TaskSpec& chief = job.cluster.worker.at(kChief.index);
  of_job.has_tables = std::ranges::any_of(layout.variables, &arena::VariableInfo::is_sparse);
  of_job.one_process = job.cluster.isOneProcess();
  of_job.towers = static_cast<uint32_t>(cluster::devicesOf(chief).size());
  of_job.clips_by_norm = train.optimizer.clip_by_global_norm != 0;
  exchange::TransferAbilities own;
  if (!job.cluster.shared_memory) own.share_from_bytes = std::nullopt;
  if (!job.cluster.stream_gradients) own.stream_from_bytes = std::nullopt;
  own.transport = job.cluster.transport;
  exchange::TransferPeer peer;
  peer.on_this_host =
      !of_job.one_process && cluster::hostKey(chief.address.host) ==
                                 cluster::hostKey(job.cluster.host(ps_task).address.host);
  return planTransfer(of_job, exchange::shardOf(layout, ps_task, of_job.codec), own, peer);
}

std::string choicesText(const exchange::TransferPlan& plan) {
  std::string text;
  for (const exchange::NamedChoice& named : exchange::choicesOf(plan))
    text += fmt::format("    {:<27}  {}\n", named.name,
                        named.choice.is_used ? "yes" : "no: " + named.choice.why_not);
  return text;
}

// The workers that sum on each host, with 'topology: {hosts: sum}'.
std::string topologyText(const cluster::JobSpec& job) {
  const cluster::ReplicationSpec& replication = job.train->replication;
  std::string text;
  for (uint32_t rank = 0; rank < replication.host_leaders.size(); ++rank) {
    const std::vector<uint32_t> ranks = replication::pushedBy(replication, rank);
    if (ranks.empty()) continue;
    const std::string& host = job.cluster.worker.at(rank).address.host;
    text += ranks.size() == 1
                ? fmt::format("  {}: {} is alone there, so the topology changes nothing for it\n",
                              host, replication::workerName(rank))
                : fmt::format("  {}: {} exchanges the mean of {}\n", host,
                              replication::workerName(rank), replication::workerNames(ranks));
  }
  return text.empty() ? text : "sums by host:\n" + text;
}

// Shards with the same plan are named together.
std::string transfersText(const cluster::JobSpec& job, const arena::ParameterLayout& layout) {
  if (job.cluster.isOneProcess()) return "";
  std::vector<std::pair<std::string, exchange::TransferPlan>> plans;
  for (uint32_t ps = 0; ps < layout.shards.size(); ++ps) {
    const std::string name = job.cluster.shardHosts().of(ps).name();
    const exchange::TransferPlan plan = transferOf(job, layout, ps);
    const auto same = std::ranges::find(plans, plan, [](const auto& each) { return each.second; });
    if (same == plans.end())
      plans.emplace_back(name, plan);
    else
      same->first += ", " + name;
  }
  std::string text = topologyText(job) + fmt::format("transfers of {}:\n", kChief.name());
  for (const auto& [names, plan] : plans)
    text += !plan.fault.empty()
                ? fmt::format("  {}: refused: {}\n", names, plan.fault)
                : fmt::format("  {}: parameters {}; gradients {}\n{}", names,
                              exchange::directionText(plan.parameters),
                              exchange::directionText(plan.gradients), choicesText(plan));
  return text + "\n";
}

Json transfersJson(const cluster::JobSpec& job, const arena::ParameterLayout& layout) {
  Json transfers = Json::array();
  for (uint32_t ps = 0; ps < layout.shards.size(); ++ps) {
    const exchange::TransferPlan plan = transferOf(job, layout, ps);
    Json choices = Json::array();
    for (const exchange::NamedChoice& named : exchange::choicesOf(plan)) {
      choices.push_back(Json{{"name", named.name}, {"used", named.choice.is_used}});
      if (!named.choice.is_used) choices.back()["why_not"] = named.choice.why_not;
    }
    transfers.push_back(Json{{"ps", ps},
                             {"parameters", exchange::directionText(plan.parameters)},
                             {"gradients", exchange::directionText(plan.gradients)},
                             {"choices", choices}});
  }
  return transfers;
}

// `explain --graph`.
void printStepGraph(const cluster::JobSpec& job, const ChiefStep& step,
                    const graph::Placement& placement, const Options& options) {
  if (options.dot) return print(stepDot(step.part, placement, job.cluster.shardHosts()));
  if (options.json)
    return printEvent("explain",
                      {{"job", job.job},
                       {"towers", step.towers},
                       {"step", stepJson(step.part, placement, job.cluster.shardHosts())}});
  const std::string towers = towersText(job, kChief.index);
  if (!towers.empty()) print(fmt::format("{}: {}\n", kChief.name(), towers));
  print(stepText(step.part, placement, job.cluster.shardHosts()));
}

}  // namespace

int explain(const cluster::JobSpec& job, const Options& options) {
  DTF_CHECK(job.train.has_value());
  const cluster::TrainSpec& train = *job.train;
  const model::ModelTable table = model::tableOf(train.model);
  const model::ModelGraph graph = train::trainingGraphOf(train);
  const graph::Placement placement =
      train::placeModel(graph.graph, train::placementOf(train), job.cluster, kChief.index);
  // What isn't timed yet is shown as the table has it.
  std::error_code gone;
  const bool is_timed = std::filesystem::exists(job.run_dir / train::kKernelsFile, gone);
  const train::KernelChoices wanted(train.kernels, job.run_dir,
                                    train::KernelChoices::Absent::kTable);
  train::KernelChoices choices(is_timed ? train.kernels : cluster::KernelRule::kTable, job.run_dir,
                               train::KernelChoices::Absent::kTable);
  const ChiefStep step = stepOf(job, choices);
  const arena::ParameterLayout layout = train::layoutOf(graph, placement);
  if (options.parts) {
    printStepGraph(job, step, placement, options);
  } else if (options.json) {
    printEvent("explain",
               {{"job", job.job},
                {"input", table.input.dims()},
                {"input_scaling",
                 model_files::scalingText(train.model, !train.data.train.csv.numeric.empty())},
                {"loss", train.model.loss.text()},
                {"parameters", table.parameters},
                {"flops", table.flops},
                {"layers", layersOf(table)},
                {"threads", threadsOf(job.cluster)},
                {"devices", devicesOf(job.cluster)},
                {"step_bytes", step.towers * step.plan.planned_bytes},
                {"ps_memory_bytes", psBytes(job, table)},
                {"kernels", kernelsOf(step.plan)},
                {"transfers", transfersJson(job, layout)},
                {"variables", variablesOf(placement)}});
  } else {
    print(fmt::format("{}\ninput scaling: {}\nloss: {}\nthreads: {}\n{}\n{}\n{}{}", table.str(),
                      model_files::scalingText(train.model, !train.data.train.csv.numeric.empty()),
                      train.model.loss.text(), threadsText(job.cluster),
                      memoryText(job, table, graph, step), kernelsText(step.plan, wanted.text()),
                      transfersText(job, layout),
                      graph::placementTable(placement, job.cluster.shardHosts())));
  }
  return 0;
}

}  // namespace dtf::launcher
