#pragma once

// A trained model from a checkpoint of its job, with its variables as whole tensors, for use
// without the cluster. Reading doesn't disturb a running job.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/file_system.h"
#include "common/checkpoint/checkpoint_folder.h"
#include "common/cluster/data_spec.h"
#include "common/model/model_spec.h"
#include "common/model_files/trained_model.h"
#include "common/train/saved_signature.h"
#include "common/train/trained_split.h"

namespace dtf::train {

// Owns: the variables. Move-only; immutable once loaded.
struct SavedModel {
  std::filesystem::path checkpoint;  // its folder
  uint64_t step = 0;
  // Whether the values are the optimizer's moving averages, as in evaluations.
  bool moving_averages = false;
  std::vector<model_files::NamedTensor> variables;  // in the model's order
  std::optional<data::DataSignature> signature;     // of the training data, if known
  std::optional<SplitSetting> eval_split;           // see trainedSplit()
  ClassNames class_names;                           // of the training data, if it has any
  std::vector<checkpoint::Rejected> rejected;       // newer checkpoints that can't be used

  // Returns the values for Evaluator and Inference, valid as long as this.
  std::vector<const float*> values() const;
};

// Loads a checkpoint. `which`: empty for the newest whole one in `folder` (<run_dir>/checkpoints),
// a step number, or the path of a checkpoint's own folder. `data`: the job's training data as its
// file describes them, if known: an error about other words names them.
// Blocks: on the disk: reads every byte of the checkpoint.
// Errors: kBadData, with the reasons, if there is no such checkpoint or none is whole; kPermission
// if this user may not read it; kBadConfig, with the difference, if it is of another model.
SavedModel loadSavedModel(FileSystem& file_system, const std::filesystem::path& folder,
                          std::string_view which, const model::ModelSpec& model,
                          const cluster::DatasetSpec* data = nullptr);

// Returns the untrained model: step 0, with the initial values of a job with this seed.
// Errors: as model::buildEvaluationGraph().
SavedModel initialModel(const model::ModelSpec& model, uint64_t seed);

}  // namespace dtf::train
