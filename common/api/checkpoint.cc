#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/api/dtf/c_checkpoint.h"
#include "common/api/guarded.h"
#include "common/api/handles.h"
#include "common/base/error.h"
#include "common/checkpoint/restore.h"
#include "common/train/graph_saver.h"

struct dtf_checkpoint {
  dtf::checkpoint::Latest::Found found;
  std::string path;
  std::vector<std::string> names;
  std::map<std::string, dtf::Shape> variables;  // and slots
  std::map<std::string, int64_t> counters;
};

using dtf::api::guarded;

namespace {

constexpr char kGlobalStep[] = "global_step";

dtf_checkpoint opened(const char* path) {
  if (*path == 0)
    throw dtf::Error(dtf::ErrorCode::kBadConfig,
                     "the path of the checkpoint is empty: name FOLDER/step-N, or the folder");
  dtf::train::GraphSaver finder(dtf::realFileSystem(), {});
  dtf_checkpoint made{finder.find(path), {}, {}, {}, {}};
  made.path = made.found.folder.string();
  const auto add = [&](const std::string& name, const dtf::Shape& shape) {
    made.names.push_back(name);
    made.variables.emplace(name, shape);
  };
  for (const dtf::checkpoint::VariableInfo& variable : made.found.manifest.variables) {
    add(variable.name, variable.shape);
    for (const std::string& slot : variable.slots) add(variable.name + "/" + slot, variable.shape);
  }
  made.counters = dtf::train::countersIn(made.found.manifest);
  made.counters.emplace(kGlobalStep, static_cast<int64_t>(made.found.manifest.global_step));
  for (const auto& [name, value] : made.counters)
    if (name != kGlobalStep) made.names.push_back(name);
  made.names.emplace_back(kGlobalStep);
  DTF_CHECK(made.names.size() == made.variables.size() + made.counters.size());
  return made;
}

dtf::Tensor read(const dtf_checkpoint& checkpoint, const std::string& name) {
  if (const auto counter = checkpoint.counters.find(name); counter != checkpoint.counters.end()) {
    dtf::Tensor value(dtf::DType::kInt64, dtf::Shape());
    value.as<int64_t>()[0] = counter->second;
    return value;
  }
  const auto variable = checkpoint.variables.find(name);
  if (variable == checkpoint.variables.end())
    throw dtf::Error(dtf::ErrorCode::kBadConfig, "the checkpoint " + checkpoint.path +
                                                     " has no tensor '" + name +
                                                     "': dtf_checkpoint_tensor() lists all");
  dtf::Tensor value(dtf::DType::kFloat32, variable->second);
  const auto to = value.as<float>();
  dtf::checkpoint::readPart(dtf::realFileSystem(), checkpoint.found.folder,
                            checkpoint.found.manifest, name, 0, to.size(), to.data());
  return value;
}

}  // namespace

dtf_code dtf_checkpoint_open(const char* path, dtf_checkpoint** made) {
  return guarded([&] { *made = new dtf_checkpoint(opened(path)); });
}

void dtf_checkpoint_free(dtf_checkpoint* checkpoint) {
  delete checkpoint;
}

const char* dtf_checkpoint_path(const dtf_checkpoint* checkpoint) {
  return checkpoint->path.c_str();
}

const char* dtf_checkpoint_job(const dtf_checkpoint* checkpoint) {
  return checkpoint->found.manifest.job.c_str();
}

uint64_t dtf_checkpoint_step(const dtf_checkpoint* checkpoint) {
  return checkpoint->found.manifest.global_step;
}

const char* dtf_checkpoint_tensor(const dtf_checkpoint* checkpoint, size_t index) {
  return index < checkpoint->names.size() ? checkpoint->names[index].c_str() : nullptr;
}

dtf_code dtf_checkpoint_read(const dtf_checkpoint* checkpoint, const char* name,
                             dtf_tensor** value) {
  return guarded([&] { *value = new dtf_tensor{read(*checkpoint, name)}; });
}
