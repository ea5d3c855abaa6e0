#pragma once

// Models trained by `dtf-launch`, for use in other graphs.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "session.h"

namespace dtf {
inline namespace v1 {

// A signature of a model in a graph: its tensors by the names listed at dtf_model_add().
struct Signature {
  std::map<std::string, Output> inputs, outputs, variables;
  std::string prefix;  // of the variables' names in the graph
};

// A loaded checkpoint. Immutable.
// Errors: DTF_BAD_CONFIG for a wrong file; DTF_BAD_DATA if there is no such checkpoint.
class Model {
 public:
  // `checkpoint`: empty for the newest; a step; a checkpoint's folder; or "initial" for none. See
  // dtf_model_load().
  explicit Model(const std::string& cluster_file, const std::string& checkpoint = {}) {
    dtf_model* made = nullptr;
    check(dtf_model_load(cluster_file.c_str(), checkpoint.c_str(), &made));
    handle_.reset(made);
  }

  uint64_t step() const { return dtf_model_step(handle_.get()); }

  // Returns the meaning of the training data as JSON; empty if the checkpoint holds none. See
  // dtf_model_data().
  std::string data() const {
    const char* const text = dtf_model_data(handle_.get());
    return text == nullptr ? "" : text;
  }
  // Returns the columns of the table that feed an input ("features") or a target, in order; empty
  // without a table.
  std::vector<std::string> columns(const std::string& part) const {
    std::vector<std::string> names;
    while (const char* name = dtf_model_column(handle_.get(), part.c_str(), names.size()))
      names.emplace_back(name);
    return names;
  }
  // Returns the names of the classes, from class 0; empty if they have no names.
  std::vector<std::string> classes() const {
    std::vector<std::string> names;
    while (const char* name = dtf_model_class(handle_.get(), names.size()))
      names.emplace_back(name);
    return names;
  }

  // Adds the nodes of the signature `name` to `graph`, on its current device and under its current
  // prefix. `variable_devices`: devices of the variables, in turn; empty: the graph's.
  Signature addTo(Graph& graph, int64_t batch, const std::string& name = "predict",
                  const std::vector<std::string>& variable_devices = {}) const {
    std::vector<const char*> devices;
    for (const std::string& device : variable_devices) devices.push_back(device.c_str());
    dtf_signature* made = nullptr;
    check(dtf_model_add(handle_.get(), name.c_str(), graph.get(), graph.prefix().c_str(),
                        graph.device().c_str(), devices.data(), devices.size(), batch, &made));
    const std::unique_ptr<dtf_signature, Free> owner(made);
    Signature signature;
    signature.prefix = graph.prefix();
    for (size_t i = 0; i < dtf_signature_count(made); ++i) {
      dtf_role role{};
      Output tensor{};
      const char* const tensor_name = dtf_signature_tensor(made, i, &role, &tensor);
      auto& all = role == DTF_INPUT    ? signature.inputs
                  : role == DTF_OUTPUT ? signature.outputs
                                       : signature.variables;
      all.emplace(tensor_name, tensor);
    }
    return signature;
  }
  // Sets the variables in a session on that graph.
  void restore(const Signature& added, Session& session) const {
    check(dtf_model_restore(handle_.get(), added.prefix.c_str(), session.get()));
  }

 private:
  struct Free {
    void operator()(dtf_model* model) const { dtf_model_free(model); }
    void operator()(dtf_signature* signature) const { dtf_signature_free(signature); }
  };
  std::unique_ptr<dtf_model, Free> handle_;
};

}  // namespace v1
}  // namespace dtf
