#pragma once

// A job with a run that has a checkpoint: its weights were imported from a file.

#include <string>
#include <vector>

#include "common/model_files/weight_files.h"
#include "tests/unit/launcher/verb_fixture.h"

namespace dtf::launcher {

class TrainedTest : public VerbTest {
 protected:
  // Returns weights that are 0, with a bias that makes every image a 3.
  std::string weights() const {
    std::vector<model_files::NamedTensor> variables;
    variables.push_back({"softmax/weights", Tensor(DType::kFloat32, {784, 10})});
    variables.push_back({"softmax/biases", Tensor(DType::kFloat32, {10})});
    variables[1].value.as<float>()[3] = 10;
    return folder_.write(
        "weights.safetensors",
        model_files::encodeSafetensors({"tiny", 0, false, job_.train->model, variables}));
  }
  std::string imported() {
    options_.from = weights();
    return printed([this] { return importModel(job_, options_); });
  }
};

}  // namespace dtf::launcher
