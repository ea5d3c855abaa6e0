#pragma once

// A trained model as a checkpoint of its job holds it: which one, and its variables as whole
// tensors. For those who use a model without its cluster; a job that runs meanwhile isn't
// disturbed.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/file_system.h"
#include "common/checkpoint/checkpoint_folder.h"
#include "common/model/model_spec.h"
#include "common/model_files/trained_model.h"
#include "common/train/saved_signature.h"

namespace dtf::train {

// Owns: the variables. Move-only; immutable once loaded.
struct SavedModel {
  std::filesystem::path checkpoint;  // its folder
  uint64_t step = 0;
  // The values are the moving averages that the optimizer keeps, as evaluations use them.
  bool moving_averages = false;
  std::vector<model_files::NamedTensor> variables;  // in the order of the model
  std::optional<data::DataSignature> signature;     // of its training data, where it is known
  ClassNames class_names;                           // that it was trained on, where these had any
  std::vector<checkpoint::Rejected> rejected;       // newer ones that can't be used

  // As Evaluator and Inference take them. Borrowed from this.
  std::vector<const float*> values() const;
};

// `which`: empty: the newest whole checkpoint in `folder` (<run_dir>/checkpoints); a number: that
// of that step; else the path of a checkpoint's own folder.
// Blocks: on the disk: reads every byte of the checkpoint.
// Errors: kBadData when there is no such checkpoint, or none that is whole, with the reasons;
// kBadConfig with the difference when it is one of another model.
SavedModel loadSavedModel(FileSystem& file_system, const std::filesystem::path& folder,
                          std::string_view which, const model::ModelSpec& model);

// The same of a model that nobody has trained yet: step 0, and what a job with this seed starts
// from.
// Errors: those of model::buildEvaluationGraph().
SavedModel initialModel(const model::ModelSpec& model, uint64_t seed);

}  // namespace dtf::train
