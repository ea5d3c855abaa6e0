#pragma once

// Fields of a table that become whole numbers, which name rows of an embedding: hashed, looked up
// in a list of words, or numbers already. TensorFlow's categorical_column_with_hash_bucket,
// _with_vocabulary_list, _with_identity.

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

// The categories of one name, of all records.
// Owns: the numbers.
// Borrows: the settings.
// Threads: thread-compatible.
// Blocks: as GrowingBlock.
class CategoryReader {
 public:
  // `part`: what the model's input is called. `resident_max`: more bytes are kept in a file.
  CategoryReader(const cluster::CategoricalColumns& spec, std::string part,
                 size_t resident_max = kResidentBytesMax);

  // Adds a field to the record that is being read; returns why it can't be, or nothing: "is no
  // whole number from 0".
  std::string add(std::string_view field);
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
