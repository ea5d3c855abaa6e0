#include "common/engine/host_act.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>

#include "common/arena/initial_value.h"
#include "common/graph/builder.h"
#include "common/graph/op_def.h"
#include "common/runtime/stop_scope.h"
#include "tests/unit/graph/error_text.h"

namespace dtf::engine {
namespace {

using graph::Output;
using graph::testing::errorText;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Bytes = std::span<const std::byte>;

template <class T>
Bytes bytesOf(const std::vector<T>& values) {
  return std::as_bytes(std::span<const T>(values));
}
template <class T>
std::vector<T> valuesOf(Bytes bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

class HostActTest : public ::testing::Test {
 protected:
  std::unique_ptr<HostAct> act(const char* op, std::vector<Output> inputs,
                               graph::Attributes attributes = {}) {
    const graph::Node& node =
        graph_.node(b_.node(op, std::move(inputs), std::move(attributes), "act"));
    EXPECT_TRUE(isHostAct(node));
    return makeHostAct(graph_, node);
  }
  Output counter() {
    return {b_.node(
        "Variable", {},
        {{"shape", Shape()}, {"dtype", DType::kInt64}, {"initializer", std::string("zeros")}},
        "count")};
  }
  std::unique_ptr<Variable> variable(DType dtype, Shape shape) {
    return std::make_unique<Variable>("v", graph::TensorSpec{dtype, std::move(shape)},
                                      ByteBudget::create(1 << 20, "the test"));
  }
  static void run(HostAct& act, std::vector<Variable*> variables, std::vector<Bytes> inputs) {
    act.run(variables, inputs);
  }

  graph::Graph graph_{graph::standardOps()};
  graph::Builder b_{graph_};
};

TEST_F(HostActTest, KernelsComputeTheRest) {
  const Output w = b_.variable("w", {2});
  EXPECT_FALSE(isHostAct(graph_.node(b_.node("AssignAdd", {w, w}))));
  EXPECT_FALSE(isHostAct(graph_.node(b_.node("ReadVariable", {counter()}))));
}

TEST_F(HostActTest, ACounterCountsBeyondTheNumbersOfAFloat) {
  const auto add = act("AssignAdd", {counter(), b_.constant({}, 1, DType::kInt64)});
  const auto count = variable(DType::kInt64, {});
  const std::vector<int64_t> one = {1}, large = {(int64_t{1} << 53) + 1};
  EXPECT_THAT(errorText([&] { run(*add, {count.get()}, {bytesOf(one)}); }),
              AllOf(HasSubstr("'v' has no value yet"), HasSubstr("initialize")));
  count->set(bytesOf(large));
  run(*add, {count.get()}, {bytesOf(one)});
  EXPECT_THAT(valuesOf<int64_t>(add->output(0)), ElementsAre((int64_t{1} << 53) + 2));
  const auto held = count->read();
  run(*add, {count.get()}, {bytesOf(one)});
  EXPECT_EQ(held->as<int64_t>()[0], large[0] + 1) << "a reader keeps its value";
  EXPECT_EQ(count->read()->as<int64_t>()[0], large[0] + 2);
}

TEST_F(HostActTest, AnAssignmentGivesACounterItsFirstValue) {
  const auto assign = act("Assign", {counter(), b_.constant({}, 1, DType::kInt64)});
  const auto count = variable(DType::kInt64, {});
  const std::vector<int64_t> five = {-5};
  run(*assign, {count.get()}, {bytesOf(five)});
  EXPECT_EQ(count->read()->as<int64_t>()[0], -5);
}

TEST_F(HostActTest, AVariableGetsTheValuesOfAJob) {
  const Output w = b_.variable("w", {4, 3});
  const auto initialize = act("InitializeVariable", {w, b_.constant({}, 1, DType::kInt64)},
                              {{"initializer", std::string("he_normal")}, {"stream", int64_t{7}}});
  const auto target = variable(DType::kFloat32, {4, 3});
  const std::vector<int64_t> seed = {42};
  run(*initialize, {target.get()}, {bytesOf(seed)});
  const Tensor wanted = arena::initialValue("he_normal", {4, 3}, 42, 7);
  EXPECT_EQ(std::memcmp(target->read()->data(), wanted.data(), wanted.bytes()), 0);
}

TEST_F(HostActTest, ADrawThatIsStoppedLeavesTheOldValue) {
  const Output w = b_.variable("w", {2});
  const auto initialize = act("InitializeVariable", {w, b_.constant({}, 1, DType::kInt64)},
                              {{"initializer", std::string("he_normal")}, {"stream", int64_t{1}}});
  const auto target = variable(DType::kFloat32, {2});
  const std::vector<int64_t> seed = {42};
  const std::vector<float> old = {1, 2};
  const std::atomic<bool> is_stopped{true};
  const runtime::StopScope scope(is_stopped);
  EXPECT_THAT(errorText([&] { run(*initialize, {target.get()}, {bytesOf(seed)}); }),
              HasSubstr("was ended"));
  EXPECT_FALSE(target->hasValue());
  target->set(bytesOf(old));
  EXPECT_THAT(errorText([&] { run(*initialize, {target.get()}, {bytesOf(seed)}); }),
              HasSubstr("was ended"));
  EXPECT_THAT(target->read()->as<float>(), ElementsAre(1, 2));
}

TEST_F(HostActTest, AValueWithoutRoomIsNotDrawn) {
  const Output w = b_.variable("w", {2});
  const auto initialize = act("InitializeVariable", {w, b_.constant({}, 1, DType::kInt64)},
                              {{"initializer", std::string("he_normal")}, {"stream", int64_t{1}}});
  Variable target("v", {DType::kFloat32, Shape{2}}, ByteBudget::create(4, "the test"));
  const std::vector<int64_t> seed = {42};
  const std::atomic<bool> is_stopped{true};  // a draw would end by it
  const runtime::StopScope scope(is_stopped);
  EXPECT_THAT(errorText([&] { run(*initialize, {&target}, {bytesOf(seed)}); }),
              HasSubstr("a value of the variable 'v'"));
  EXPECT_FALSE(target.hasValue());
}

TEST_F(HostActTest, ACounterStartsAtZero) {
  const auto initialize = act("InitializeVariable", {counter(), b_.constant({}, 1, DType::kInt64)},
                              {{"initializer", std::string("zeros")}, {"stream", int64_t{1}}});
  const auto count = variable(DType::kInt64, {});
  const std::vector<int64_t> seed = {42}, five = {5};
  count->set(bytesOf(five));
  run(*initialize, {count.get()}, {bytesOf(seed)});
  EXPECT_EQ(count->read()->as<int64_t>()[0], 0);
}

TEST_F(HostActTest, TellsWhetherAVariableHasAValue) {
  const auto has = act("IsVariableInitialized", {b_.variable("w", {2})});
  const auto target = variable(DType::kFloat32, {2});
  run(*has, {target.get()}, {});
  EXPECT_THAT(valuesOf<uint8_t>(has->output(0)), ElementsAre(0));
  const std::vector<float> value = {1, 2};
  target->set(bytesOf(value));
  run(*has, {target.get()}, {});
  EXPECT_THAT(valuesOf<uint8_t>(has->output(0)), ElementsAre(1));
}

// A row that is read twice counts as one: the norm is of (3, 4).
TEST_F(HostActTest, ClippingSumsRowsBeforeItTakesTheirNorm) {
  const auto clip =
      act("ClipByGlobalNorm",
          {b_.constant({1}, 1), b_.constant({3, 1}, 1), b_.constant({3}, 1, DType::kInt32)},
          {{"clip_norm", 2.5}, {"sparse", std::string("1")}});
  const std::vector<float> dense = {3}, rows = {1, 0, 3};
  const std::vector<int32_t> ids = {9, 8, 9};
  for (int repeated = 0; repeated < 2; ++repeated) {
    run(*clip, {}, {bytesOf(dense), bytesOf(rows), bytesOf(ids)});
    EXPECT_THAT(valuesOf<float>(clip->output(0)), ElementsAre(1.5F));
    EXPECT_THAT(valuesOf<float>(clip->output(1)), ElementsAre(2.0F, 0, 0)) << "in the first place";
    EXPECT_THAT(valuesOf<float>(clip->output(2)), ElementsAre(5.0F));
  }
  const std::vector<int32_t> bad = {9, -8, 9};
  EXPECT_THAT(errorText([&] {
                run(*clip, {}, {bytesOf(dense), bytesOf(rows), bytesOf(bad)});
              }),
              AllOf(HasSubstr("'act'"), HasSubstr("index 1 of gradient 1 is no row")));
}

}  // namespace
}  // namespace dtf::engine
