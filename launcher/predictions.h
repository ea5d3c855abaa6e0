#pragma once

// What a model says of examples, as lines or a file.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "common/data/bad_records.h"
#include "common/data/dataset.h"
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
  const data::KeptColumns* kept = nullptr;       // null: none
  std::span<const std::string> targets = {};     // what a model of targets learns
};

// Checks the names of kept columns, before the outputs of `examples` records are computed.
// Errors: kUsage, as encodePredictions().
void checkKeptNames(PredictionFormat format, const model::ModelSpec& model, int64_t examples,
                    int64_t units, const PredictionNames& names);

// `outputs`: of all records that could be read, `units` for each. Each record has its line, also
// one that couldn't: the reason stands in place of what the model says.
//   kText  a line that names the columns, then for each record, with tabs between: its number from
//          0, its file, the kept columns, the truth, the class, the class's name, the outputs with
//          six digits; or "error: " and the reason
//   kJson  for each record one object: "event", "example", "file", the kept columns, "truth",
//          "class", "class_name", and the outputs under their name; or "error"
//   kCsv   columns example, file, the kept ones, truth (truth_0 ...), class, class_name,
//          p(no) ... by the words of the classes; the names of the targets, unless a column before
//          has that name; else probability_0 ... (output_0 ...); error
//   kNpy   the outputs alone: float32 [records, units]; NaN of those that couldn't be read
// One unit that tells two classes apart gives the probability of class 1: kText and kCsv name it by
// that class, "p(yes)" (kCsv without words: probability_1), kJson by the member "probability_of".
// What isn't known has no such column, or member; "error" is only there where there is one. A model
// that is trained towards targets names no class. kJson and kCsv give each number the digits that
// it takes to read the same float32 back.
// Errors: kUsage for a kept column that has the name of another one, and for kept columns in kNpy.
std::string encodePredictions(PredictionFormat format, const model::ModelSpec& model,
                              std::span<const float> outputs, int64_t units,
                              const PredictionNames& names = {});

}  // namespace dtf::launcher
