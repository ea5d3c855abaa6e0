#pragma once

// Models that `dtf-launch` trained, in graphs of one's own.

#include <memory>
#include <string>

#include "session.h"

namespace dtf {
inline namespace v1 {

// What a model in a graph reads and gives.
struct AppliedModel {
  Output features;     // to be fed: [batch, the input's shape]
  Output outputs;      // [batch, units]: probabilities after a cross-entropy, else the last layer's
  std::string prefix;  // of its variables
};

// A checkpoint, read. Immutable.
// Errors: DTF_BAD_CONFIG for a file that is wrong; DTF_BAD_DATA where there is no such checkpoint.
class Model {
 public:
  // `checkpoint`: empty: the newest; a step; or a checkpoint's folder. See dtf_model_load().
  explicit Model(const std::string& cluster_file, const std::string& checkpoint = {}) {
    dtf_model* made = nullptr;
    check(dtf_model_load(cluster_file.c_str(), checkpoint.c_str(), &made));
    handle_.reset(made);
  }

  uint64_t step() const { return dtf_model_step(handle_.get()); }

  // Adds it to `graph`, on its device and under its prefix at this moment.
  AppliedModel addTo(Graph& graph, int64_t batch) const {
    AppliedModel added;
    added.prefix = graph.prefix();
    check(dtf_model_add(handle_.get(), graph.get(), added.prefix.c_str(), graph.device().c_str(),
                        batch, &added.features, &added.outputs));
    return added;
  }
  // In a session on that graph.
  void restore(const AppliedModel& added, Session& session) const {
    check(dtf_model_restore(handle_.get(), added.prefix.c_str(), session.get()));
  }

 private:
  struct Free {
    void operator()(dtf_model* model) const { dtf_model_free(model); }
  };
  std::unique_ptr<dtf_model, Free> handle_;
};

}  // namespace v1
}  // namespace dtf
