#pragma once

// Renamed layers, keys, losses and metrics: the names in files of version 0.1.0, and the Keras
// names in snake case that replaced them. One table serves the reader of files, the default names
// of variables, the comparison of models, and the printed reference.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/yaml/report.h"
#include "common/yaml/yaml_tree.h"

namespace dtf::model {

// One renamed word. Its views point to static data.
struct FormerName {
  enum class Kind : uint8_t { kLayer, kKey, kLoss, kMetric };
  // kSynonym: Keras accepts the old name too, so dtf doesn't warn. kText: only texts of checkpoints
  // have the old name, never a file.
  enum class Use : uint8_t { kRenamed, kSynonym, kText };
  Kind kind;
  std::string_view was;
  std::string_view now;
  std::string_view layer = {};  // kKey: today's name of the layer that has the key
  Use use = Use::kRenamed;
  // kKey: a file with the old name but without `implied_key` means `implied_value`, the default of
  // that time.
  std::string_view implied_key = {};
  std::string_view implied_value = {};
};

std::span<const FormerName> formerNames();

// Returns the row of the old name `was`, or nullptr. `layer` is for kKey.
const FormerName* formerName(FormerName::Kind kind, std::string_view was,
                             std::string_view layer = {});

// Returns the old names of a key for the reference: "formerly kernel", "also mse"; empty if it has
// none.
std::string formerlyText(std::string_view table_path, std::string_view key);

// Warns at `place` that `was` is called `now`. `more` ends the sentence.
void warnOfFormerName(std::string_view was, std::string_view now, const yaml::Place& place,
                      yaml::Report& report, std::string_view more = {});

// Gives a loss (a word, or a map of one) its name of today; warns of an old one.
void useTodaysLoss(yaml::YamlNode& loss, yaml::Report& report);

// An element of a list of layers. Value type.
struct LayerUse {
  yaml::YamlNode node;  // with names of today
  std::string word;     // the layer's type as the file spells it; empty: the element has none
};

// Gives an element of a list of layers its names of today, but not the lists of layers within it;
// warns of old names.
// Errors: reports a key that is present under both names.
LayerUse withTodaysNames(const yaml::YamlNode& element, yaml::Report& report);

// Returns the default name under the other spelling of the layer's type: "batch_normalization_1"
// for "batch_norm_1" of the type "batch_normalization", and back; empty if the type has one
// spelling.
std::string otherDefaultName(std::string_view name, std::string_view word, std::string_view type);

// Returns whether the name begins with the layer's type, or with an old name of it.
bool beginsWithType(std::string_view name, std::string_view type);

// Replaces old default names of layers in a variable's name: "block/batch_norm_1/gamma" becomes
// "block/batch_normalization_1/gamma".
std::string todaysVariable(std::string_view variable);

// Returns the text of a model or layer (model_text.h) with today's names.
std::string todaysText(std::string_view text);

}  // namespace dtf::model
