#pragma once

// Classifiers that tests of the runtime train for a step.

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "common/graph/graph.h"
#include "tests/unit/graph/reference_interpreter.h"

namespace dtf::runtime::testing {

struct ClassifierOptions {
  int64_t batch = 100;
  int64_t inputs = 784;
  std::vector<int64_t> hidden = {};  // relu layers
  int64_t classes = 10;
  DType image_type = DType::kUInt8;  // kUInt8: normalised and reshaped from [batch, inputs, 1]
  DType label_type = DType::kUInt8;
  bool gradients = true;
};

// A worker's part of a partitioned graph: _Pull and _Push of "w<i>" and "b<i>", layer by layer.
struct Classifier {
  graph::Graph graph;
  graph::testing::Feeds feeds;  // for every tensor that is bound
  graph::Output logits, loss, accuracy;
  std::vector<std::string> variables;
  std::vector<graph::Output> gradients;  // by variable
};

Classifier makeClassifier(Random& random, const ClassifierOptions& options);

}  // namespace dtf::runtime::testing
