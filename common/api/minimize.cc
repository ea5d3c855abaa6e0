#include "common/optimizer/minimize.h"

#include <cstring>
#include <optional>
#include <string>

#include "common/api/dtf/training.h"
#include "common/api/guarded.h"
#include "common/api/handles.h"
#include "common/optimizer/optimizer_text.h"

namespace {

dtf::optimizer::SyncReplicas replicasOf(const dtf_sync_replicas_options* options) {
  dtf_sync_replicas_options wanted{};
  if (options == nullptr || options->size < sizeof(options->size) || options->size > sizeof(wanted))
    throw dtf::Error(dtf::ErrorCode::kUsage,
                     "dtf_sync_replicas_options is missing, or its size is not " +
                         std::to_string(sizeof(wanted)) +
                         " or less: set it, or build with the headers of this libdtf");
  std::memcpy(&wanted, options, options->size);
  if (wanted.replicas_to_aggregate == 0) wanted.replicas_to_aggregate = wanted.total_num_replicas;
  if (wanted.total_num_replicas == 0) wanted.total_num_replicas = wanted.replicas_to_aggregate;
  return {wanted.replicas_to_aggregate, wanted.total_num_replicas, wanted.rank};
}

void give(dtf_output* to, const dtf::graph::Output& output) {
  if (to != nullptr) *to = {output.node.value, output.index};
}

dtf::optimizer::Minimized minimized(dtf_graph& graph, dtf_output loss, const char* optimizer,
                                    const dtf_minimize_options* options,
                                    std::optional<dtf::optimizer::SyncReplicas> replicas) {
  const dtf_minimize_options wanted = dtf::api::optionsOf(options, "dtf_minimize_options");
  dtf::api::checkHas(graph.graph, loss);
  dtf::optimizer::MinimizeOptions how;
  for (size_t i = 0; i < wanted.variables_count; ++i) {
    dtf::api::checkHas(graph.graph, wanted.variables[i]);
    how.variables.push_back(dtf::api::toOutput(wanted.variables[i]));
  }
  if (wanted.prefix != nullptr) how.prefix = wanted.prefix;
  if (wanted.global_step != nullptr) how.global_step = wanted.global_step;
  how.replicas = replicas;
  dtf::optimizer::Minimized made = dtf::optimizer::minimize(
      graph.graph, dtf::api::toOutput(loss), dtf::optimizer::decodeOptimizer(optimizer), how);
  DTF_CHECK(made.train.node.value >= 0 && made.global_step.node.value >= 0);
  return made;
}

}  // namespace

dtf_code dtf_graph_minimize(dtf_graph* graph, dtf_output loss, const char* optimizer,
                            const dtf_minimize_options* options, dtf_output* train,
                            dtf_output* global_step, dtf_output* norm) {
  return dtf::api::guarded([&] {
    const auto made = minimized(*graph, loss, optimizer, options, std::nullopt);
    give(train, made.train);
    give(global_step, made.global_step);
    give(norm, made.norm.value_or(dtf::graph::Output{{-1}, 0}));
  });
}

dtf_code dtf_graph_sync_replicas(dtf_graph* graph, dtf_output loss, const char* optimizer,
                                 const dtf_minimize_options* options,
                                 const dtf_sync_replicas_options* replicas, dtf_output* train,
                                 dtf_output* global_step, dtf_output* norm, dtf_output* accepted,
                                 int32_t* finish) {
  return dtf::api::guarded([&] {
    const auto made = minimized(*graph, loss, optimizer, options, replicasOf(replicas));
    give(train, made.train);
    give(global_step, made.global_step);
    give(norm, made.norm.value_or(dtf::graph::Output{{-1}, 0}));
    give(accepted, made.accepted.value());
    if (finish != nullptr) *finish = made.finish.value().value;
  });
}
