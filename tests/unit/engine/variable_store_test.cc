#include "common/engine/variable_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/graph/builder.h"
#include "common/graph/op_def.h"
#include "tests/unit/graph/error_text.h"

namespace dtf::engine {
namespace {

using graph::testing::errorText;
using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kCpu = "/job:ps/replica:0/task:0/device:CPU:0";
const graph::TensorSpec kOne{DType::kFloat32, {1}}, kTwo{DType::kFloat32, {2}};
const std::vector<std::byte> kValue(sizeof(float));

TEST(VariableStore, TheSameNameIsTheSameVariable) {
  VariableStore store;
  const auto w = store.use({kCpu, "", "w"}, kOne, "w");
  EXPECT_EQ(store.use({kCpu, "", "w"}, kOne, "another"), w);
  EXPECT_NE(store.use({kCpu, "mine", "w"}, kOne, "w"), w);
  EXPECT_NE(store.use({"/device:CPU:1", "", "w"}, kOne, "w"), w);
  EXPECT_NE(store.use({kCpu, "", "v"}, kOne, "v"), w);
}

TEST(VariableStore, AnotherShapeIsRefusedInWords) {
  VariableStore store;
  store.use({kCpu, "mine", "w"}, kOne, "w")->set(kValue);
  EXPECT_THAT(errorText([&] {
                store.use({kCpu, "mine", "w"}, kTwo, "tower/w");
              }),
              AllOf(HasSubstr("'tower/w'"), HasSubstr("float32[2]"), HasSubstr("float32[1]"),
                    HasSubstr("'mine'"), HasSubstr("shared_name")));
}

TEST(VariableStore, AValueStaysAndAVariableWithoutOneGoesWithItsUser) {
  VariableStore store;
  store.use({kCpu, "", "w"}, kOne, "w")->set(kValue);
  EXPECT_TRUE(store.use({kCpu, "", "w"}, kOne, "w")->hasValue());
  store.use({kCpu, "", "v"}, kOne, "v");
  EXPECT_EQ(store.use({kCpu, "", "v"}, kTwo, "v")->spec(), kTwo) << "nobody used the one before";
  const auto used = store.use({kCpu, "", "v"}, kTwo, "v");
  EXPECT_THAT(errorText([&] { store.use({kCpu, "", "v"}, kOne, "v"); }), HasSubstr("'v'"));
  EXPECT_EQ(store.load().variables, 1u);
  EXPECT_EQ(store.load().bytes, sizeof(float));
}

TEST(VariableStore, AContainerIsReset) {
  VariableStore store;
  const auto used = store.use({kCpu, "mine", "a"}, kOne, "a");
  used->set(kValue);
  for (const char* const container : {"mine", ""})
    store.use({kCpu, container, "b"}, kOne, "b")->set(kValue);
  store.reset("mine");
  EXPECT_FALSE(used->hasValue());
  EXPECT_EQ(store.use({kCpu, "mine", "a"}, kOne, "a"), used);
  EXPECT_EQ(store.use({kCpu, "mine", "b"}, kTwo, "b")->spec(), kTwo)
      << "nobody uses the one before";
  EXPECT_TRUE(store.use({kCpu, "", "b"}, kOne, "b")->hasValue());
  EXPECT_EQ(store.load().variables, 1u);
}

TEST(VariableStore, VariablesAndBytesAreBounded) {
  VariableStore store(2, sizeof(float));
  store.use({kCpu, "", "a"}, kOne, "a")->set(kValue);
  const auto b = store.use({kCpu, "", "b"}, kOne, "b");
  EXPECT_THAT(errorText([&] {
                store.use({kCpu, "", "c"}, kOne, "c");
              }),
              AllOf(HasSubstr("'c'"), HasSubstr("2 variables")));
  EXPECT_THAT(errorText([&] { b->set(kValue); }), AllOf(HasSubstr("'b'"), HasSubstr("4 B of 4 B")));
}

TEST(VariableStore, AUserGoneMakesRoom) {
  VariableStore store(1);
  store.use({kCpu, "", "a"}, kOne, "a");
  store.use({kCpu, "", "b"}, kOne, "b");
}

TEST(ResourceKey, IsTheSharedNameOrTheNodes) {
  graph::Graph graph(graph::standardOps());
  graph::Builder b(graph);
  const auto device = b.deviceScope(kCpu);
  b.variable("w", {1});
  b.node("Variable", {},
         {{"shape", Shape{1}},
          {"initializer", std::string("zeros")},
          {"shared_name", std::string("w")},
          {"container", std::string("mine")}},
         "v");
  EXPECT_EQ(ResourceKey::of(*graph.find("w")), (ResourceKey{kCpu, "", "w"}));
  EXPECT_EQ(ResourceKey::of(*graph.find("v")), (ResourceKey{kCpu, "mine", "w"}));
}

}  // namespace
}  // namespace dtf::engine
