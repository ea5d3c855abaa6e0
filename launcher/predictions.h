#pragma once

// What a model says of examples, as lines or a file.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "common/model/model_spec.h"

namespace dtf::launcher {

enum class PredictionFormat : uint8_t { kText, kJson, kCsv, kNpy };

// By the ending of the file: .txt, .jsonl, .csv or .npy; without a file text, or JSON where it is asked
// for.
// Errors: kUsage for another ending.
PredictionFormat predictionFormat(const std::optional<std::filesystem::path>& file, bool json);

// What examples and classes are called, where that is known.
// Borrows: both, for a call.
struct PredictionNames {
  std::span<const std::filesystem::path> files = {};  // of each example
  std::span<const std::string> classes = {};          // from class 0
};

// `outputs`: of all examples, `units` for each.
//   kText  a line that names the columns, then for each example, with tabs between: its number, its file,
//          the class, the class's name, the outputs with six digits
//   kJson  for each example one object: "event", "example", "file", "class", "class_name", and the
//          outputs under their name
//   kCsv   columns example, file, class, class_name, probability_0 ... (output_0 ...)
//   kNpy   the outputs alone: float32 [examples, units]
// What has no name has no such column, or member. A model that is trained towards targets names no class.
// kJson and kCsv give each number the digits that it takes to read the same float32 back.
std::string encodePredictions(PredictionFormat format, const model::ModelSpec& model,
                              std::span<const float> outputs, int64_t units,
                              const PredictionNames& names = {});

}  // namespace dtf::launcher
