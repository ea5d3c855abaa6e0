#pragma once

// What a model says of examples, as lines or a file.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "common/data/bad_records.h"
#include "common/model/model_spec.h"

namespace dtf::launcher {

enum class PredictionFormat : uint8_t { kText, kJson, kCsv, kNpy };

// By the ending of the file: .txt, .jsonl, .csv or .npy; without a file text, or JSON where it is
// asked for.
// Errors: kUsage for another ending.
PredictionFormat predictionFormat(const std::optional<std::filesystem::path>& file, bool json);

// The names and truths of the records, where they are known.
// Borrows: all, for a call.
struct PredictionNames {
  std::span<const std::filesystem::path> files = {};  // of each record
  std::span<const std::string> classes = {};          // from class 0
  // The targets of each readable record, the same number of fields for each.
  std::span<const std::string> truths = {};
  std::span<const data::BadRecord> unread = {};  // the unreadable records, in their order
};

// `outputs`: of all records that could be read, `units` for each. Each record has its line, also
// one that couldn't: the reason stands in place of what the model says.
//   kText  a line that names the columns, then for each record, with tabs between: its number from
//          0, its file, the truth, the class, the class's name, the outputs with six digits; or
//          "error: " and the reason
//   kJson  for each record one object: "event", "example", "file", "truth", "class", "class_name",
//          and the outputs under their name; or "error"
//   kCsv   columns example, file, truth (truth_0 ...), class, class_name, probability_0 ...
//          (output_0 ...), error
//   kNpy   the outputs alone: float32 [records, units]; NaN of those that couldn't be read
// What isn't known has no such column, or member; "error" is only there where there is one. A model
// that is trained towards targets names no class. kJson and kCsv give each number the digits that
// it takes to read the same float32 back.
std::string encodePredictions(PredictionFormat format, const model::ModelSpec& model,
                              std::span<const float> outputs, int64_t units,
                              const PredictionNames& names = {});

}  // namespace dtf::launcher
