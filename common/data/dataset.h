#pragma once

// A data set, in memory or mapped into it (byte_block.h). Where it comes from (drawn here, read
// from files) is openDataset()'s business (open_dataset.h); which of its examples make up a batch
// is batch_order.h's.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "common/data/bad_records.h"
#include "common/data/part.h"

namespace dtf::data {

// Owns: its parts.
// Threads: immutable after construction, hence thread-safe.
// Blocks: on the disk, where an example that is onDisk() is looked at.
class Dataset {
 public:
  // As many labels as features, and categories of each (DTF_CHECK).
  Dataset(Part features, Part labels, std::vector<Part> categories = {},
          std::vector<BadRecord> left_out = {});

  int64_t size() const { return labels().count(); }
  std::span<const Part> parts() const { return parts_; }
  const Part& features() const { return parts_[0]; }
  const Part& labels() const { return parts_[1]; }
  // Fed beside the features, in the order of cluster::DatasetSpec::categories(), of which the first
  // may be the features.
  std::span<const Part> categories() const { return parts().subspan(2); }
  // Records of its files that are none of its examples.
  const std::vector<BadRecord>& leftOut() const { return left_out_; }
  // Whether reading an example may wait for the disk.
  bool onDisk() const;

 private:
  std::vector<Part> parts_;  // features, labels, categories
  std::vector<BadRecord> left_out_;
};

// Examples to be predicted.
struct UnlabelledExamples {
  Part features;
  std::vector<std::filesystem::path> files;  // of images: of each record; else empty
  std::vector<Part> categories = {};         // of tables: as Dataset::categories()
  std::vector<BadRecord> unread = {};        // the records that are no examples, in their order
  // Tables that have the targets: their fields, of each example, as they are.
  std::vector<std::string> truths = {};
};

// Labels that are whole numbers are classes, those that are floats are targets.
inline bool areClasses(const PartSpec& labels) {
  return labels.dtype != DType::kFloat32;
}

// `name` is what messages call the features.
// Errors: kBadConfig when a batch needs more examples than there are, or there are more than can be
// shuffled.
void checkBatchSize(int64_t batch_size, int64_t examples, const std::string& name);

}  // namespace dtf::data
