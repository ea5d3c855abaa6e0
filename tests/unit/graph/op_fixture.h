#pragma once

// A graph to add ops to; the reference interpreter computes it from the numbers that a test feeds.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "common/graph/builder.h"
#include "common/graph/op_def.h"
#include "tests/unit/graph/error_text.h"
#include "tests/unit/graph/reference_interpreter.h"

namespace dtf::graph::testing {

class OpTest : public ::testing::Test {
 protected:
  Output fed(Shape shape, Values values, DType dtype = DType::kFloat32) {
    const Output input = b_.placeholder(graph_.uniqueName("fed"), dtype, std::move(shape));
    feeds_[input] = std::move(values);
    return input;
  }
  // For tests of shapes and errors only.
  Output open(Shape shape, DType dtype = DType::kFloat32) {
    return b_.placeholder(graph_.uniqueName("open"), dtype, std::move(shape));
  }
  Values value(Output output) { return evaluate(graph_, feeds_, output); }
  Shape shape(Output output) { return graph_.spec(output).shape; }

  Graph graph_{standardOps()};
  Builder b_{graph_};
  Feeds feeds_;
};

}  // namespace dtf::graph::testing
