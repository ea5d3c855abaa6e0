#pragma once

// Synchronous replicas: TensorFlow's SyncReplicasOptimizer, over dtf_graph_sync_replicas().
//
//   const dtf::SyncMinimized training =
//       dtf::syncReplicas(dtf::Adam{.learning_rate = 0.01},
//                         {.replicas_to_aggregate = 10, .total_num_replicas = 10, .rank = rank})
//           .minimize(graph, loss);
//   session.run(feeds, {graph.name(training.train)});   // waits for the others

#include <cstdint>
#include <string>
#include <utility>

#include "graph.h"
#include "training.h"

namespace dtf {
inline namespace v1 {

struct SyncReplicasOptions {
  int64_t replicas_to_aggregate = 0;  // gradients of one step; 0: total_num_replicas
  int64_t total_num_replicas = 0;     // clients; 0: replicas_to_aggregate; more: backups
  int64_t rank = 0;                   // of this client, from 0
};

struct SyncMinimized {
  Output train;         // runs a step; its value, int64, is the global step after it
  Output global_step;   // the counter, a variable
  Output norm;          // with clip_by_global_norm, the norm before; else node -1
  Output accepted;      // int64: 1 if the step has this client's gradient, 0 if it was late
  int32_t finish = -1;  // a node to run at the end: no client waits any more
};

// Value type. Errors: as dtf_graph_sync_replicas() in <dtf/training.h>.
class SyncReplicas {
 public:
  SyncReplicas(Optimizer optimizer, SyncReplicasOptions options)
      : optimizer_(std::move(optimizer)), options_(options) {}

  SyncMinimized minimize(Graph& graph, Output loss, const MinimizeOptions& options = {}) const {
    Optimizer optimizer = optimizer_;
    optimizer.set("clip_by_global_norm", options.clip_by_global_norm)
        .set("clip_by_value", options.clip_by_value)
        .set("moving_average.decay", options.moving_average_decay);
    dtf_minimize_options how{};
    how.size = sizeof(how);
    how.variables = options.variables.data();
    how.variables_count = options.variables.size();
    how.prefix = graph.prefix().c_str();
    how.global_step = options.global_step.c_str();
    dtf_sync_replicas_options replicas{};
    replicas.size = sizeof(replicas);
    replicas.replicas_to_aggregate = options_.replicas_to_aggregate;
    replicas.total_num_replicas = options_.total_num_replicas;
    replicas.rank = options_.rank;
    SyncMinimized made;
    check(dtf_graph_sync_replicas(graph.get(), loss, optimizer.text().c_str(), &how, &replicas,
                                  &made.train, &made.global_step, &made.norm, &made.accepted,
                                  &made.finish));
    return made;
  }

 private:
  Optimizer optimizer_;
  SyncReplicasOptions options_;
};

inline SyncReplicas syncReplicas(Optimizer optimizer, SyncReplicasOptions options) {
  return {std::move(optimizer), options};
}

}  // namespace v1
}  // namespace dtf
