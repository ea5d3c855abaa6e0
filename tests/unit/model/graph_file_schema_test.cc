#include "common/model/graph_file_schema.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace dtf::model {
namespace {

bool has(std::string_view op) {
  return std::ranges::any_of(graphOpTable().keys,
                             [op](const yaml::Key& key) { return key.name == op; });
}

TEST(GraphFileSchema, HasTheOpsThatPeopleWrite) {
  for (const std::string_view op :
       {"MatMul", "If", "While", "Variable", "scope", "gradients", "minimize"})
    EXPECT_TRUE(has(op)) << op;
  for (const std::string_view op : {"_Send", "_Recv", "ApplyGradient", "ApplySparseGradient"})
    EXPECT_FALSE(has(op)) << op;
}

TEST(GraphFileSchema, EveryAttributeOfEveryOpCanBeWritten) {
  for (const std::string_view op : graph::standardOps().names())
    for (const graph::AttributeDef& attribute : graph::standardOps().find(op)->attributes) {
      const yaml::Key key = graphKeyOf(attribute);
      EXPECT_EQ(key.name, attribute.name);
      EXPECT_EQ(key.required, attribute.required);
    }
}

}  // namespace
}  // namespace dtf::model
