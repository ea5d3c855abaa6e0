#pragma once

// The meaning of the numbers of a data set: the columns they come from, in order, and the way from
// fields and images to numbers. Checkpoints and exported files hold the signature of the training
// data. Other data are read by it, or refused. (TensorFlow Transform saves a graph for this; dtf
// saves the settings of its readers.)
//
// As text it is JSON:
//   {"kind": "table", "header": true, "table_columns": 3,
//    "inputs": [{"name": "features", "columns": ["width", "height"], "preparation": []}],
//    "targets": [{"name": "labels", "columns": ["kind"],
//                 "preparation": [{"op": "vocabulary", "words": ["cat", "dog"]}]}]}
// A preparation is a list of steps, in order; "op" is the kind of each:
//   vocabulary  words, num_oov_buckets (only of inputs): a field becomes the place of its word;
//   from,
//               max_size, min_count, if the words are learned
//   bucketize   boundaries, num_oov_buckets: a number becomes the count of boundaries up to it
//   hash        buckets: a field becomes the hash of its bytes
//   split and max_words of these two: a field has so many words at most, with numbers from 1;
//               0 stands behind the last one
//   fill, missing_indicator, log1p, standardize: see table_preparation.h
//   resize      method, height, width, channels: an image becomes one of that size
//   draw        problem: dtf draws the examples itself
// Later versions may add kinds: two preparations are the same if their JSON is, so that a version
// which doesn't know a kind refuses it.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/json.h"

namespace dtf::data {

// An input or a target of the model. Value type.
struct PartSignature {
  std::string name;                  // "features", "labels", or the name of categories
  std::vector<std::string> columns;  // of a table, in order: names, or numbers from 1
  std::vector<Json> preparation = {};
  bool operator==(const PartSignature&) const = default;
};

// Value type. Texts are UTF-8: other bytes of a file become U+FFFD.
struct DataSignature {
  std::string kind;           // of data: "table", "images", "arrays" or "drawn"
  bool header = false;        // of a table: columns are names
  int64_t table_columns = 0;  // of a table: all columns
  std::vector<PartSignature> inputs;
  std::vector<PartSignature> targets;
  bool isTable() const { return table_columns > 0; }
  bool operator==(const DataSignature&) const = default;
};

// One line of ASCII.
std::string encodeSignature(const DataSignature& signature);

// Errors: kBadData, beginning with `where`.
DataSignature decodeSignature(std::string_view text, const std::string& where);

// The names of columns for a person: "a, b, c", or the first of many.
std::string listText(const std::vector<std::string>& names);

// `text` as a signature holds it.
std::string asUtf8(std::string_view text);
std::vector<std::string> asUtf8(const std::vector<std::string>& texts);

// Returns the words of the classes, from class 0; empty: they have none.
std::vector<std::string> classWords(const DataSignature& signature);

// Returns the differences between the training data of a model and other data, for a person: a line
// each, with both sides. Empty: a number means the same in both. `data`: the name of the other data
// in messages. Data of different kinds share few names: only classes are compared.
std::string signatureDifference(const DataSignature& model, const DataSignature& other,
                                const std::string& data);

}  // namespace dtf::data
