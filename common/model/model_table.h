#pragma once

// A model layer by layer, with the cost of each, to print before training.

#include <cstdint>
#include <string>
#include <vector>

#include "common/model/model_graph.h"

namespace dtf::model {

// Value type.
struct LayerRow {
  std::string path;  // "stage1/0/conv2d"
  std::string text;  // its settings
  int depth = 0;
  Shape output;             // of one example
  uint64_t parameters = 0;  // without the layers within it
  uint64_t flops = 0;       // likewise; forward pass, one example
};

struct ModelTable {
  Shape input;  // one example
  std::vector<CategoryInput> categories;
  std::vector<LayerRow> layers;
  uint64_t parameters = 0;
  uint64_t flops = 0;  // forward pass, one example; a training step takes about three times as many

  std::string str() const;  // a table for a terminal
};

// Counts two for a multiply-add, one for any other operation on an element, none for ops that only
// move or rename elements.
// Errors: see buildEvaluationGraph().
ModelTable tableOf(const ModelSpec& model);

}  // namespace dtf::model
