#include "common/optimizer/minimize.h"

#include <string>

#include "common/api/guarded.h"
#include "common/api/handles.h"
#include "common/optimizer/optimizer_text.h"

namespace {

void give(dtf_output* to, const dtf::graph::Output& output) {
  if (to != nullptr) *to = {output.node.value, output.index};
}

}  // namespace

dtf_code dtf_graph_minimize(dtf_graph* graph, dtf_output loss, const char* optimizer,
                            const dtf_minimize_options* options, dtf_output* train,
                            dtf_output* global_step, dtf_output* norm) {
  return dtf::api::guarded([&] {
    const dtf_minimize_options wanted = dtf::api::optionsOf(options, "dtf_minimize_options");
    dtf::api::checkHas(graph->graph, loss);
    dtf::optimizer::MinimizeOptions how;
    for (size_t i = 0; i < wanted.variables_count; ++i) {
      dtf::api::checkHas(graph->graph, wanted.variables[i]);
      how.variables.push_back(dtf::api::toOutput(wanted.variables[i]));
    }
    if (wanted.prefix != nullptr) how.prefix = wanted.prefix;
    if (wanted.global_step != nullptr) how.global_step = wanted.global_step;
    const dtf::optimizer::Minimized made = dtf::optimizer::minimize(
        graph->graph, dtf::api::toOutput(loss), dtf::optimizer::decodeOptimizer(optimizer), how);
    DTF_CHECK(made.train.node.value >= 0 && made.global_step.node.value >= 0);
    give(train, made.train);
    give(global_step, made.global_step);
    give(norm, made.norm.value_or(dtf::graph::Output{{-1}, 0}));
  });
}
