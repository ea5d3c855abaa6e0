// `dtf-launch explain`: the model and its placement, without starting anything.

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "common/base/check.h"
#include "common/base/print.h"
#include "common/graph/placer.h"
#include "common/model/model_table.h"
#include "common/model_files/trained_model.h"
#include "common/train/initial_values.h"
#include "launcher/commands.h"
#include "launcher/output.h"

namespace dtf::launcher {

namespace {

using nlohmann::ordered_json;

ordered_json layersOf(const model::ModelTable& table) {
  ordered_json layers = ordered_json::array();
  for (const model::LayerRow& row : table.layers)
    layers.push_back(ordered_json{{"name", row.path},
                                  {"settings", row.text},
                                  {"depth", row.depth},
                                  {"output", row.output.dims()},
                                  {"parameters", row.parameters},
                                  {"flops", row.flops}});
  return layers;
}

ordered_json variablesOf(const graph::Placement& placement) {
  ordered_json variables = ordered_json::array();
  for (const graph::PlacedVariable& variable : placement.variables) {
    ordered_json parts = ordered_json::array();
    for (const graph::VariablePart& part : variable.parts)
      parts.push_back(
          ordered_json{{"ps", part.ps_task}, {"begin", part.begin}, {"count", part.count}});
    variables.push_back(
        ordered_json{{"name", variable.name}, {"shape", variable.shape.dims()}, {"parts", parts}});
  }
  return variables;
}

}  // namespace

int explain(const cluster::JobSpec& job, const Options& options) {
  DTF_CHECK(job.train.has_value());
  const cluster::TrainSpec& train = *job.train;
  const model::ModelTable table = model::tableOf(train.model);
  const model::ModelGraph graph = model::buildTrainingGraph(train.model, train.data.batch_size);
  const graph::Placement placement = train::placeModel(graph.graph, train::placementOf(train),
                                                       train::shardsOf(job.cluster), kChief.index);
  if (options.json) {
    printEvent("explain", {{"job", job.job},
                           {"input", table.input.dims()},
                           {"input_scaling", model_files::scalingText(train.model)},
                           {"loss", train.model.loss.text()},
                           {"parameters", table.parameters},
                           {"flops", table.flops},
                           {"layers", layersOf(table)},
                           {"variables", variablesOf(placement)}});
  } else {
    print(fmt::format("{}\ninput scaling: {}\nloss: {}\n\n{}", table.str(),
                      model_files::scalingText(train.model), train.model.loss.text(),
                      graph::placementTable(placement)));
  }
  return 0;
}

}  // namespace dtf::launcher
