#pragma once

// A TRAIN.yaml of a small model and a few more keys.

#include <string>

#include "tests/support/temporary_files.h"
#include "tests/support/train_file.h"

namespace dtf::cluster {

// Errors: as for the file.
inline TrainSpec trainOf(const std::string& more) {
  const testing::TemporaryFiles files;
  files.write("t.yaml",
              "model:\n"
              "  input: {shape: [28, 28, 1]}\n"
              "  layers:\n"
              "    - flatten:\n"
              "    - dense: {units: 10, name: softmax}\n"
              "  loss: sparse_categorical_crossentropy\n" +
                  more);
  return testing::readTrainFile("t.yaml");
}

}  // namespace dtf::cluster
