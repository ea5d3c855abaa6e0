#pragma once

// Every key that CLUSTER.yaml and TRAIN.yaml may have, in one place: validation, did-you-mean and
// the printed reference (`--help-config`) all read these tables, so they can't disagree. A key that
// a later version will have is listed too, so that a file that uses it is told so instead of being
// misread.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "common/cluster/optimizer_spec.h"

namespace dtf::cluster {

enum class ValueType : uint8_t {
  kMap,
  kList,
  kText,
  kWhole,
  kNumber,
  kBool,
  kChoice,
  kTextOrMap,
  kNumberOrMap
};

// Bounds of a number; an open bound is not itself allowed.
struct NumberRange {
  double min = 0;
  double max = 0;
  bool min_open = false;
  bool max_open = false;
};

// Where OptimizerSpec keeps what a key sets, where it is one of the optimizer's settings.
using SettingField = std::variant<std::monostate, double OptimizerSpec::*, bool OptimizerSpec::*,
                                  double LearningRateSchedule::*, bool LearningRateSchedule::*,
                                  uint64_t LearningRateSchedule::*>;

struct Key {
  std::string_view name;
  ValueType type = ValueType::kMap;
  std::string_view help = {};
  bool required = false;
  bool available = true;
  int64_t whole_min = 0;  // kWhole, and the elements of a kList of whole numbers
  int64_t whole_max = 0;
  NumberRange number = {};        // kNumber, kNumberOrMap
  std::string_view choices = {};  // kChoice, and the elements of a kList of words: "async|sync"
  std::string_view later_choices = {};  // known, not available in this version
  SettingField field = {};
  std::optional<double> default_value = {};  // of a setting, where it isn't the field's own

  bool inRange(int64_t value) const { return value >= whole_min && value <= whole_max; }
  bool inRange(double value) const;
  std::string rangeText() const;  // "from 1 to 1000000", "more than 0 and at most 1"
};

struct Table {
  std::string_view path;  // "train.model.input", for the reference
  std::span<const Key> keys;
  const Table* also = nullptr;  // whose keys the map may have too; none of them required

  const Key* find(std::string_view name) const;  // nullptr: no such key
  const Key& at(std::string_view name) const;    // DTF_CHECKs that there is one
  std::vector<std::string_view> names() const;   // the available ones
};

namespace schema {
extern const Table kJob;              // a whole CLUSTER.yaml
extern const Table kCluster;          // cluster:
extern const Table kTask;             // an element of ps: and worker:, written as a map
extern const Table kLaunch;           // launch:
extern const Table kRestarts;         // launch.restarts:
extern const Table kTimeouts;         // timeouts:
extern const Table kDurability;       // durability: its three values
extern const Table kSnapshot;         // durability.snapshot:
extern const Table kTrain;            // a whole TRAIN.yaml
extern const Table kModel;            // model:
extern const Table kInput;            // model.input:
extern const Table kLayers;           // the types of layer
extern const Table kDense;            // - dense:
extern const Table kDropout;          // - dropout:
extern const Table kPlainLayer;       // - flatten:, - relu: and so on
extern const Table kData;             // data:
extern const Table kDataset;          // data.train:, data.eval:
extern const Table kOptimizers;       // the optimizers
extern const Table kOptimizerCommon;  // what every optimizer has
extern const Table kMovingAverage;
extern const Table kGradientDescent;
extern const Table kMomentum;
extern const Table kAdagrad;
extern const Table kAdadelta;
extern const Table kAdam;
extern const Table kAdamW;
extern const Table kRmsProp;
extern const Table kFtrl;
extern const Table kLars;
extern const Table kLamb;
extern const Table kLearningRate;  // the schedules
extern const Table kConstantRate;
extern const Table kExponentialRate;
extern const Table kPolynomialRate;
extern const Table kCosineRate;
extern const Table kReplication;  // replication:
extern const Table kPlacement;    // placement:
extern const Table kPartition;    // placement.partition:
extern const Table kEval;         // eval:
extern const Table kCheckpoint;   // checkpoint:
extern const Table kSummaries;    // summaries:
extern const Table kReport;       // report:

const Table& optimizer(OptimizerSpec::Kind kind);
const Table& learningRate(LearningRateSchedule::Kind kind);
}  // namespace schema

std::span<const Table* const> allTables();

// The first table that has the available key `word`, `except` left out; nullptr: none. `name` and
// `address` say nothing about where they belong.
const Table* tableWith(std::string_view word, const Table* except = nullptr);

// "train.steps": the key `word` of `table` as --set has it.
std::string keyPath(const Table& table, std::string_view word);

// The key in "batch_size:50", which YAML takes for one word; empty: `text` isn't that.
std::string_view keyWithoutSpace(std::string_view text);

// The reference of all keys as text for a terminal, at most 100 columns.
std::string keyReference();

// nearestWord() for words of any length: nothing that long is a misspelling of a key.
std::string nearestKey(std::string_view word, std::span<const std::string_view> words);

// " - did you mean 'worker'?", or when no word is near, " (one of ps, worker)".
std::string suggestion(std::string_view word, std::span<const std::string_view> words);

}  // namespace dtf::cluster
