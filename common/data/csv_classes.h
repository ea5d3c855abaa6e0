#pragma once

// Converts the label of a table's records to classes: numbers, words of a list, or words that are
// learned.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/cluster/data_spec.h"

namespace dtf::data {

// Owns: the words found so far. Borrows: the settings.
// Threads: thread-compatible.
class ClassReader {
 public:
  // `is_learning`: each new word is a class, if the settings ask for learned ones.
  ClassReader(const cluster::CsvSpec& spec, bool is_learning);

  // Returns the class of a field; nullopt if it has none.
  // Errors: kBadData for more words than can be classes.
  std::optional<int32_t> find(std::string_view field);

  // Returns the fault of a field that has no class: "is none of the class_names".
  std::string faultOf(std::string_view field) const;

  // The words by class; empty: the fields are numbers.
  std::vector<std::string> names() const;

 private:
  const cluster::CsvSpec& spec_;
  const bool is_learning_;
  std::map<std::string, int32_t, std::less<>> classes_;
};

}  // namespace dtf::data
