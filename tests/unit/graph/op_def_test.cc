#include "common/graph/op_def.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace dtf::graph {
namespace {

using ::testing::ElementsAre;

OpDef opNamed(std::string name) {
  OpDef def;
  def.name = std::move(name);
  def.infer = [](std::span<const TensorSpec>, const Attributes&) {
    return std::vector<TensorSpec>();
  };
  return def;
}

TEST(OpCatalog, FindsAnOpByItsExactName) {
  OpCatalog catalog;
  OpDef two = opNamed("Two");
  two.inputs = 2;
  catalog.add(std::move(two));
  ASSERT_NE(catalog.find("Two"), nullptr);
  EXPECT_EQ(catalog.find("Two")->inputs, 2);
  for (const char* const other : {"two", "Tw", "Two ", ""})
    EXPECT_EQ(catalog.find(other), nullptr) << other;
}

TEST(OpCatalog, ListsTheNamesInOrder) {
  OpCatalog catalog;
  EXPECT_TRUE(catalog.names().empty());
  for (const char* const name : {"Relu", "Add", "MatMul"}) catalog.add(opNamed(name));
  EXPECT_THAT(catalog.names(), ElementsAre("Add", "MatMul", "Relu"));
}

TEST(OpCatalogDeathTest, AnOpHasANameOfItsOwnAndAShapeFunction) {
  OpCatalog catalog;
  catalog.add(opNamed("Add"));
  EXPECT_DEATH(catalog.add(opNamed("Add")), "the op Add is defined twice");
  EXPECT_DEATH(catalog.add(opNamed("")), "");
  OpDef shapeless = opNamed("Sub");
  shapeless.infer = nullptr;
  EXPECT_DEATH(catalog.add(shapeless), "Sub");
}

}  // namespace
}  // namespace dtf::graph
