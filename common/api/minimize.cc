#include "common/optimizer/minimize.h"

#include <cstring>
#include <string>

#include "common/api/guarded.h"
#include "common/api/handles.h"
#include "common/base/error.h"
#include "common/optimizer/optimizer_text.h"

namespace {

// Reads options of any size: the program may be compiled for another version.
dtf_minimize_options optionsOf(const dtf_minimize_options* options) {
  dtf_minimize_options wanted{};
  if (options == nullptr) return wanted;
  if (options->size < sizeof(options->size) || options->size > sizeof(wanted))
    throw dtf::Error(dtf::ErrorCode::kUsage,
                     "dtf_minimize_options.size is " + std::to_string(options->size) + ", not " +
                         std::to_string(sizeof(wanted)) +
                         " or less: set it, or build with the headers of this libdtf");
  std::memcpy(&wanted, options, options->size);
  return wanted;
}

void give(dtf_output* to, const dtf::graph::Output& output) {
  if (to != nullptr) *to = {output.node.value, output.index};
}

}  // namespace

dtf_code dtf_graph_minimize(dtf_graph* graph, dtf_output loss, const char* optimizer,
                            const dtf_minimize_options* options, dtf_output* train,
                            dtf_output* global_step, dtf_output* norm) {
  return dtf::api::guarded([&] {
    const dtf_minimize_options wanted = optionsOf(options);
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
