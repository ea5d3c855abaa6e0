#include "common/graph/standard_ops.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace dtf::graph {
namespace {

TEST(StandardOps, AreOneCatalogueForTheProcess) {
  EXPECT_EQ(&standardOps(), &standardOps());
}

TEST(StandardOps, HaveTheOpsOfEachChapter) {
  for (const char* const op : {"MatMul", "Softmax", "Conv2D", "LayerNorm", "Concat",
                               "StatelessRandomNormal", "While", "Variable", "FIFOQueue"})
    EXPECT_NE(standardOps().find(op), nullptr) << op;
}

TEST(StandardOps, NoAttributeOfAnOpIsNamedTwice) {
  for (const std::string_view name : standardOps().names()) {
    std::set<std::string> attributes;
    for (const AttributeDef& attribute : standardOps().find(name)->attributes) {
      EXPECT_FALSE(attribute.name.empty()) << name;
      EXPECT_TRUE(attributes.insert(attribute.name).second) << name << ": " << attribute.name;
    }
  }
}

// Passes over graphs merge and fold all ops that are not stateful.
TEST(StandardOps, OpsOnStateAndOtherTasksAreStateful) {
  for (const char* const op : {"Variable", "ReadVariable", "Assign", "ScatterAdd", "ApplyGradient",
                               "_Send", "_Recv", "_Pull", "_Push", "QueueEnqueue", "QueueDequeue",
                               "ApplyOptimizer", "InitializeVariable", "ClipByGlobalNorm"})
    EXPECT_TRUE(standardOps().find(op)->stateful) << op;
  for (const char* const op : {"Const", "Add", "If", "StatelessRandomUniform"})
    EXPECT_FALSE(standardOps().find(op)->stateful) << op;
}

}  // namespace
}  // namespace dtf::graph
