#pragma once

// Converts fields of a table to row numbers of an embedding: hashed, looked up in a list of words,
// or numbers already, like TensorFlow's categorical_column_with_hash_bucket, _with_vocabulary_list,
// _with_identity.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/cluster/data_spec.h"
#include "common/data/growing_block.h"
#include "common/data/part.h"

namespace dtf::data {

// Collects the categories of one name from all records.
// Owns: the numbers.
// Borrows: the settings.
// Threads: thread-compatible.
// Blocks: see GrowingBlock.
class CategoryReader {
 public:
  // `part`: the name of the model's input. `resident_max`: more bytes are kept in a file.
  CategoryReader(const cluster::CategoricalColumns& spec, std::string part,
                 size_t resident_max = kResidentBytesMax);

  // Adds a field to the current record; returns why it can't, "is no whole number from 0", or
  // nothing.
  std::string add(std::string_view field);
  // Whether field `index` of the current record is a word that the list lacks.
  bool isOtherWord(size_t index) const;
  void keep();  // the record is a good one
  void drop() { record_.clear(); }

  PartSpec spec() const;
  // `source`: the files. Called last.
  Part finish(const std::string& source) { return {spec(), source, numbers_.finish()}; }

 private:
  const cluster::CategoricalColumns& spec_;
  const std::string part_;
  std::map<std::string, int32_t, std::less<>> words_;
  std::vector<int32_t> record_;
  GrowingBlock numbers_;
};

}  // namespace dtf::data
