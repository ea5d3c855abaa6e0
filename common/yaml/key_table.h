#pragma once

// The keys that one map of a file may have. Validation, did-you-mean and the printed reference all
// read these tables, so they can't disagree. Keys of later versions are listed too: a file that
// uses one gets that message instead of being misread.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dtf::yaml {

enum class ValueType : uint8_t {
  kMap,
  kList,
  kText,
  kWhole,
  kNumber,
  kBool,
  kChoice,
  kTextOrMap,
  kListOrMap,
  kNumberOrMap,
  kWholeOrList,
  kChoiceOrList  // a word, a whole number, or a list of either
};

// The bounds of a number; an open bound excludes itself.
struct NumberRange {
  double min = 0;
  double max = 0;
  bool min_open = false;
  bool max_open = false;
};

struct Key {
  std::string_view name;
  ValueType type = ValueType::kMap;
  std::string_view help = {};
  bool required = false;
  bool available = true;
  int64_t whole_min = 0;  // kWhole, and the elements of a list of whole numbers
  int64_t whole_max = 0;
  NumberRange number = {};        // kNumber, kNumberOrMap
  std::string_view choices = {};  // kChoice, and the elements of a kList of words: "async|sync"
  std::string_view later_choices = {};  // known, but not available in this version
  std::string_view instead = {};        // the nearest available choice for a later one
  // A field that the owner of the table attaches to the key, of the owner's type: see
  // cluster/optimizer_settings.h. May be null.
  const void* field = nullptr;
  // the default of a setting, if it isn't the field's own
  std::optional<double> default_value = {};

  bool inRange(int64_t value) const { return value >= whole_min && value <= whole_max; }
  bool inRange(double value) const;
  std::string rangeText() const;  // "from 1 to 1000000", "more than 0 and at most 1"
  std::string typeText() const;   // "whole number from 1 to 10", "async|sync"
};

struct Table {
  std::string_view path;  // "train.model.input", for the reference
  std::span<const Key> keys;
  const Table* also = nullptr;  // the keys of this table are allowed too; none of them is required

  const Key* find(std::string_view name) const;  // nullptr if there is no such key
  const Key& at(std::string_view name) const;    // DTF_CHECKs that the key exists
  std::vector<std::string_view> names() const;   // the available ones
};

// All tables used to read the parts of a file, for hints at the place of a key.
using Tables = std::span<const Table* const>;

// Returns "train.optimizer" for the table "train.optimizer.adam"; empty for the file's own keys.
std::string_view parentOf(const Table& table);

// Returns the first table with the available key `word`, nullptr if none. Skips `except`; prefers
// tables below it, then its siblings (another optimizer). No hint for `name` and `address`: many
// have them.
const Table* tableWith(Tables tables, std::string_view word, const Table* except = nullptr);

// Returns "train.steps": the key `word` of `table` in the form of --set.
std::string keyPath(const Table& table, std::string_view word);

// Returns keyPath() of the key `word` of `owner`. If siblings of `owner` have the key too (each
// optimizer has a learning_rate), NAME stands for the one that the file chooses.
std::string settingPath(Tables tables, const Table& owner, std::string_view word);

// Returns the key in "batch_size:50", which YAML reads as one word; empty for any other text.
std::string_view keyWithoutSpace(Tables tables, std::string_view text);

// Like nearestWord(), for words of any length: a very long word is no misspelling of a key.
std::string nearestKey(std::string_view word, std::span<const std::string_view> words);

// Returns " - did you mean 'worker'?", or if no word is near, " (one of ps, worker)".
std::string suggestion(std::string_view word, std::span<const std::string_view> words);

}  // namespace dtf::yaml
