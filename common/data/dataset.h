#pragma once

// A data set, in memory or mapped into it (byte_block.h). open_dataset.h draws it or reads it from
// files; batch_order.h chooses the examples of a batch.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "common/data/bad_records.h"
#include "common/data/other_words.h"
#include "common/data/part.h"

namespace dtf::data {

// Owns: its parts.
// Threads: immutable after construction, hence thread-safe.
// Blocks: on the disk, on access to an example that is onDisk().
class Dataset {
 public:
  // All parts have the same number of examples (DTF_CHECK). `records`: see recordsRead(); 0: those
  // of the parts and `left_out`.
  Dataset(Part features, Part labels, std::vector<Part> categories = {},
          std::vector<BadRecord> left_out = {}, std::vector<OtherWords> other_words = {},
          int64_t records = 0, std::vector<uint64_t> split_keys = {});

  int64_t size() const { return labels().count(); }
  std::span<const Part> parts() const { return parts_; }
  const Part& features() const { return parts_[0]; }
  const Part& labels() const { return parts_[1]; }
  // Fed beside the features, in the order of cluster::DatasetSpec::categories(); the first of these
  // may be the features.
  std::span<const Part> categories() const { return parts().subspan(2); }
  // The records of its files that were left out.
  const std::vector<BadRecord>& leftOut() const { return left_out_; }
  // The number of records in its files: both sides of a split, and the records left out.
  int64_t recordsRead() const { return records_; }
  // One entry for each column of its tables that has such words. Both sides of a split have the
  // counts of the whole table.
  const std::vector<OtherWords>& otherWords() const { return other_words_; }
  // A checksum of each example that doesn't depend on its preparation, for a split; empty: a split
  // takes the checksums of the parts.
  const std::vector<uint64_t>& splitKeys() const { return split_keys_; }
  // Whether reading an example may wait for the disk.
  bool onDisk() const;

 private:
  std::vector<Part> parts_;  // features, labels, categories
  std::vector<BadRecord> left_out_;
  std::vector<OtherWords> other_words_;
  int64_t records_;
  std::vector<uint64_t> split_keys_;
};

// Columns of a table as text, without the spaces around each field. Each record has its fields,
// also an unread one; they are empty where it has too few or too many, or a broken quote.
struct KeptColumns {
  std::vector<std::string> names;
  std::vector<std::string> fields;  // names.size() of each record
};

// Examples to be predicted.
struct UnlabelledExamples {
  Part features;
  std::vector<std::filesystem::path> files;  // images: of each record; else empty
  std::vector<Part> categories = {};         // tables: see Dataset::categories()
  std::vector<BadRecord> unread = {};        // the records that are no examples, in their order
  // The labels or targets of each example as text, without the spaces around them, from a table or
  // an archive that has them.
  std::vector<std::string> truths = {};
  KeptColumns kept = {};
  // The files of a folder without the name of an image, which are no records; the first of them.
  int64_t other_files = 0;
  std::filesystem::path other_file = {};
  std::vector<OtherWords> other_words = {};  // tables: see Dataset::otherWords()
};

// Whole numbers are classes, floats are targets.
inline bool areClasses(const PartSpec& labels) {
  return labels.dtype != DType::kFloat32;
}

// `name`: the features, for messages.
// Errors: kBadConfig when a batch needs more examples than there are, or there are more than can be
// shuffled.
void checkBatchSize(int64_t batch_size, int64_t examples, const std::string& name);

}  // namespace dtf::data
