#pragma once

// Converts fields of a table to row numbers of an embedding: hashed, looked up in a list of words,
// put into buckets, or numbers already, like TensorFlow's categorical_column_with_hash_bucket,
// _with_vocabulary_list, bucketized_column, categorical_column_with_identity. A field may hold
// several words.

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
  // `learned`: the words of the training data, if the settings ask for these; nullptr: not yet
  // known, so that words have numbers in the order in which they appear.
  CategoryReader(const cluster::CategoricalColumns& spec, std::string part,
                 size_t resident_max = kResidentBytesMax,
                 const std::vector<std::string>* learned = nullptr, char decimal = '.');

  // Adds a field to the current record; returns why it can't, "is no whole number from 0", or
  // nothing.
  // Errors: kBadData for more different words than can be learned.
  std::string add(std::string_view field);
  // Returns the number of words in field `index` of the current record that the list lacks.
  int64_t otherWords(size_t index) const;
  void keep();  // the record is a good one
  void drop() { record_.clear(); }

  PartSpec spec() const;
  // The words by number, while they are being learned.
  std::vector<std::string> words() const;
  // `source`: the files. Called last.
  Part finish(const std::string& source) { return {spec(), source, numbers_.finish()}; }

 private:
  enum class Kind : uint8_t { kNumbers, kHashed, kListed, kLearning, kBuckets };
  static Kind kindOf(const cluster::CategoricalColumns& spec, bool is_learned);
  std::string addWords(std::string_view field);
  std::string addOne(std::string_view field);
  std::string addNumber(std::string_view field);
  std::string addNew(std::string_view word);

  const cluster::CategoricalColumns& spec_;
  const std::string part_;
  const Kind kind_;
  const char decimal_;
  const int32_t first_;    // the number of the first word
  size_t word_bytes_ = 0;  // while learning
  std::map<std::string, int32_t, std::less<>> words_;
  std::vector<int32_t> record_;
  GrowingBlock numbers_;
};

}  // namespace dtf::data
