#pragma once

// The keys that one map of a file may have. Validation, did-you-mean and the printed reference all
// read these tables, so they can't disagree. A key that a later version will have is listed too, so
// that a file that uses it is told so instead of being misread.

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
  kChoiceOrList  // a word, a whole number, or a list of those
};

// Bounds of a number; an open bound is not itself allowed.
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
  std::string_view later_choices = {};  // known, not available in this version
  std::string_view instead = {};        // of those: what comes nearest
  // What the owner of the table keeps beside the key, of the owner's type: see
  // cluster/optimizer_settings.h. Null: nothing.
  const void* field = nullptr;
  std::optional<double> default_value = {};  // of a setting, where it isn't the field's own

  bool inRange(int64_t value) const { return value >= whole_min && value <= whole_max; }
  bool inRange(double value) const;
  std::string rangeText() const;  // "from 1 to 1000000", "more than 0 and at most 1"
  std::string typeText() const;   // "whole number from 1 to 10", "async|sync"
};

struct Table {
  std::string_view path;  // "train.model.input", for the reference
  std::span<const Key> keys;
  const Table* also = nullptr;  // whose keys the map may have too; none of them required

  const Key* find(std::string_view name) const;  // nullptr: no such key
  const Key& at(std::string_view name) const;    // DTF_CHECKs that there is one
  std::vector<std::string_view> names() const;   // the available ones
};

// All tables that the parts of a file are read with, for hints at where a key belongs.
using Tables = std::span<const Table* const>;

// "train.optimizer" of the table "train.optimizer.adam"; empty: the file's own keys.
std::string_view parentOf(const Table& table);

// The first table that has the available key `word`, `except` left out and its siblings (another
// optimizer) before others; nullptr: none. `name` and `address` say nothing about where they
// belong.
const Table* tableWith(Tables tables, std::string_view word, const Table* except = nullptr);

// "train.steps": the key `word` of `table` as --set has it.
std::string keyPath(const Table& table, std::string_view word);

// keyPath() of the key `word`, which `owner` has. Where siblings of `owner` have it too (each
// optimizer has a learning_rate), NAME stands for the one that the file chooses.
std::string settingPath(Tables tables, const Table& owner, std::string_view word);

// The key in "batch_size:50", which YAML takes for one word; empty: `text` isn't that.
std::string_view keyWithoutSpace(Tables tables, std::string_view text);

// nearestWord() for words of any length: nothing that long is a misspelling of a key.
std::string nearestKey(std::string_view word, std::span<const std::string_view> words);

// " - did you mean 'worker'?", or when no word is near, " (one of ps, worker)".
std::string suggestion(std::string_view word, std::span<const std::string_view> words);

}  // namespace dtf::yaml
