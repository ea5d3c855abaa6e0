#pragma once

// The names that files of version 0.1.0 use for layers, their keys, losses and metrics, beside
// Keras's names in snake case, which replaced them. One table serves the reader of files, the
// default names of variables, the comparison of models, and the printed reference.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/yaml/report.h"
#include "common/yaml/yaml_tree.h"

namespace dtf::model {

// One name that changed. A view of what lives as long as the process.
struct FormerName {
  enum class Kind : uint8_t { kLayer, kKey, kLoss, kMetric };
  // kSynonym: Keras accepts the old name too, so no warning is printed. kText: the old name stood
  // in the texts of checkpoints alone, and no file may have it.
  enum class Use : uint8_t { kRenamed, kSynonym, kText };
  Kind kind;
  std::string_view was;
  std::string_view now;
  std::string_view layer = {};  // kKey: today's name of the layer that has the key
  Use use = Use::kRenamed;
  // kKey: a file with the old name means this value of this other key where it leaves the key out,
  // because the key's default is another one today.
  std::string_view implied_key = {};
  std::string_view implied_value = {};
};

std::span<const FormerName> formerNames();

// The row of the old name `was`; nullptr: no such row. `layer` is for kKey.
const FormerName* formerName(FormerName::Kind kind, std::string_view was,
                             std::string_view layer = {});

// "formerly kernel", "also mse": the old names of the key `key` of the table `table_path`, for
// the reference; empty: it has none.
std::string formerlyText(std::string_view table_path, std::string_view key);

// Warns at `place` that `was` is called `now`. `more` ends the sentence.
void warnOfFormerName(std::string_view was, std::string_view now, const yaml::Place& place,
                      yaml::Report& report, std::string_view more = {});

// Gives a loss, a word or a map of one, its name of today; warns of an old one.
void useTodaysLoss(yaml::YamlNode& loss, yaml::Report& report);

// An element of a list of layers. Value type.
struct LayerUse {
  yaml::YamlNode node;  // with names of today
  std::string word;     // the layer's type as the file spells it; empty: the element has none
};

// Gives an element of a list of layers its names of today, except in the lists of layers that it
// holds; warns of old names.
// Errors: a key that is there under both names goes into the report.
LayerUse withTodaysNames(const yaml::YamlNode& element, yaml::Report& report);

// The same default name under the other spelling of the layer's type: "batch_normalization_1" for
// "batch_norm_1" of the type "batch_normalization", and back; empty: the type has one spelling.
std::string otherDefaultName(std::string_view name, std::string_view word, std::string_view type);

// Whether the name begins with the layer's type, or with the old name of that type.
bool beginsWithType(std::string_view name, std::string_view type);

// "block/batch_normalization_1/gamma" for "block/batch_norm_1/gamma": default names of layers
// become those that a file with names of today gives.
std::string todaysVariable(std::string_view variable);

// The text of a model or of one of its layers (model_text.h), as today's version writes it.
std::string todaysText(std::string_view text);

}  // namespace dtf::model
