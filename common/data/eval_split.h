#pragma once

// `data.eval_split`: a share of the data is evaluated and not trained on. A checksum of an
// example's bytes chooses its side. So an example stays on its side when the order of the examples,
// their number or the seed changes, and equal examples are on one side. Of a table the fields of
// one column can choose instead: groups, which stay together, or times, of which the last are
// evaluated.

#include <cstdint>
#include <span>
#include <vector>

#include "common/cluster/data_spec.h"
#include "common/data/dataset.h"
#include "common/data/image_folder.h"

namespace dtf::data {

// Returns the positions of the examples on the side of `split`, ascending. Every example is on one
// of the two sides. Each class keeps an example to train on, whatever its checksums (not in a split
// by time), and there is one to evaluate. `among`: only these examples, ascending, are there;
// empty: all are. Errors: kBadData naming the labels' source when there would be none to evaluate.
std::vector<int64_t> examplesOfSide(const Dataset& dataset, const cluster::EvalSplit& split,
                                    std::span<const int64_t> among = {});

// Copies the examples of one side. The side to train on keeps the records that were left out, which
// belong to neither.
// Errors: as examplesOfSide(); kCannotWrite without room for many.
Dataset sideOf(const Dataset& dataset, const cluster::EvalSplit& split);

// The side of a folder of images that is evaluated, with the file of each example. Files that were
// left out are on neither side.
ImageTable evaluatedImages(const ImageTable& table, double fraction);

}  // namespace dtf::data
