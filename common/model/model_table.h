#pragma once

// What a model consists of, layer by layer, with what each costs: for people who want to see it
// before they train it.

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
  uint64_t parameters = 0;  // of its own: without those of the layers that it holds
  uint64_t flops = 0;       // of its own, forwards, for one example
};

struct ModelTable {
  Shape input;  // one example
  std::vector<CategoryInput> categories;
  std::vector<LayerRow> layers;
  uint64_t parameters = 0;
  uint64_t flops = 0;  // forwards, for one example; a training step takes about three times that

  std::string str() const;  // a table for a terminal
};

// A multiply-add counts as two, any other operation on an element as one; what only moves or names
// elements is free.
// Errors: as buildEvaluationGraph().
ModelTable tableOf(const ModelSpec& model);

}  // namespace dtf::model
