#pragma once

// Learns the preparation of a table from its training data: numbers of columns, words and classes.

#include "common/cluster/data_spec.h"

namespace dtf::data {

// Returns `spec` with the numbers and words that it learns from its files, or unchanged, if it
// learns none or has them. Reads the files once; only examples to train on count. Every task of a
// job learns the same from the same files.
//   words    of a vocabulary: the most frequent first, of equally frequent ones the smaller in
//   bytes classes  sorted: numbers by size, before other words by their bytes
// Blocks: on the disk, as readCsv().
// Errors: as readCsv(), at the key that names the files; kBadData for a column or a label from
// which nothing can be learned.
cluster::DatasetSpec learnTable(const cluster::DatasetSpec& spec);

}  // namespace dtf::data
