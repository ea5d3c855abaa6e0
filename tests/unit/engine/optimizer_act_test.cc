// Single updates; tests/conformance/optimizers_test.cc compares each optimizer with a job's.

#include "common/engine/optimizer_act.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/graph/builder.h"
#include "common/graph/op_def.h"
#include "common/optimizer/optimizer.h"
#include "common/optimizer/optimizer_text.h"
#include "tests/unit/graph/error_text.h"

namespace dtf::engine {
namespace {

using graph::Output;
using graph::testing::errorText;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Bytes = std::span<const std::byte>;

// w of 3 elements with one slot.
class OptimizerActTest : public ::testing::Test {
 protected:
  std::unique_ptr<OptimizerAct> update(const std::string& optimizer) {
    const Output w = b_.variable("w", {3}), slot = b_.variable("w/slot", {3});
    const graph::Node& node = graph_.node(
        b_.node("ApplyOptimizer", {w, slot, b_.constant({3}, 1), b_.constant({}, 0, DType::kInt64)},
                {{"optimizer", optimizer}}, "update"));
    return std::make_unique<OptimizerAct>(graph_, node);
  }
  // Makes new variables for it.
  std::unique_ptr<OptimizerAct> updateOf(const std::string& optimizer, size_t slots) {
    std::vector<Output> inputs;
    for (size_t i = 0; i < slots + 1; ++i) inputs.push_back(b_.variable("", {3}));
    inputs.push_back(b_.constant({3}, 1));
    inputs.push_back(b_.constant({}, 0, DType::kInt64));
    return std::make_unique<OptimizerAct>(
        graph_, graph_.node(b_.node("ApplyOptimizer", inputs, {{"optimizer", optimizer}})));
  }
  // Returns the values of a variable of ones, and of its slots of ones, after the update.
  static std::vector<std::vector<float>> updated(OptimizerAct& act, size_t slots, int64_t step) {
    std::vector<std::unique_ptr<Variable>> all;
    std::vector<Variable*> variables;
    for (size_t i = 0; i < slots + 1; ++i) {
      all.push_back(variable({1, 1, 1}));
      variables.push_back(all.back().get());
    }
    const std::vector<float> gradient = {1, 2, 3};
    const std::vector<Bytes> inputs = {std::as_bytes(std::span<const float>(gradient)),
                                       std::as_bytes(std::span<const int64_t>(&step, 1))};
    act.run(variables, inputs);
    std::vector<std::vector<float>> values;
    for (const Variable* const each : variables) {
      const Variable::Value value = each->read();
      const auto floats = value->as<float>();
      values.emplace_back(floats.begin(), floats.end());
    }
    return values;
  }
  static std::unique_ptr<Variable> variable(const std::vector<float>& values,
                                            uint64_t bytes_max = 1 << 20) {
    auto made = std::make_unique<Variable>("w", graph::TensorSpec{DType::kFloat32, Shape{3}},
                                           ByteBudget::create(bytes_max, "the test"));
    if (!values.empty()) made->set(std::as_bytes(std::span<const float>(values)));
    return made;
  }
  static void run(OptimizerAct& act, Variable& w, Variable& slot, int64_t step = 0) {
    static const std::vector<float> gradient = {1, 2, 3};
    const std::vector<Variable*> variables = {&w, &slot};
    const std::vector<Bytes> inputs = {std::as_bytes(std::span<const float>(gradient)),
                                       std::as_bytes(std::span<const int64_t>(&step, 1))};
    act.run(variables, inputs);
  }

  graph::Graph graph_{graph::standardOps()};
  graph::Builder b_{graph_};
};

TEST_F(OptimizerActTest, ChangesTheVariableAndItsSlotInPlace) {
  const auto act = update("momentum learning_rate=1 momentum=0.5");
  const auto w = variable({1, 1, 1}), slot = variable({2, 0, 0});
  run(*act, *w, *slot);
  EXPECT_THAT(slot->read()->as<float>(), ElementsAre(2, 2, 3));
  EXPECT_THAT(w->read()->as<float>(), ElementsAre(-1, -1, -2));
}

TEST_F(OptimizerActTest, TheRateIsThatOfTheStep) {
  const auto act =
      update("momentum learning_rate=1 schedule=exponential decay_steps=1 decay_rate=0.5");
  const auto w = variable({0, 0, 0}), slot = variable({0, 0, 0});
  run(*act, *w, *slot, 2);
  EXPECT_THAT(w->read()->as<float>(), ElementsAre(-0.25F, -0.5F, -0.75F));
  EXPECT_THAT(errorText([&] { run(*act, *w, *slot, -1); }),
              AllOf(HasSubstr("'update' (ApplyOptimizer)"), HasSubstr("the step is -1")));
  EXPECT_THAT(errorText([&] { run(*act, *w, *slot, int64_t{1} << 32); }), HasSubstr("from 0 to"));
}

// Others train the variable as well, so its step jumps, or goes back to a checkpoint.
TEST_F(OptimizerActTest, AJumpOfTheStepGivesTheBitsOfAnUpdateThatStartsThere) {
  for (const std::string optimizer : {"adam", "adamw weight_decay=0.1", "lamb", "momentum"}) {
    const size_t slots = optimizer == "momentum" ? 1 : 2;
    const auto act = updateOf(optimizer, slots);
    for (const int64_t step : {0, 1, 4, 5, 100, 1'000'000, 3, 5}) {
      const auto fresh = updateOf(optimizer, slots);
      EXPECT_EQ(updated(*act, slots, step), updated(*fresh, slots, step)) << optimizer << step;
    }
  }
}

// Large enough for several parts, the last of them shorter.
TEST_F(OptimizerActTest, SeveralThreadsGiveTheBitsOfOne) {
  constexpr int64_t kElements = 300'001;
  runtime::ComputePool pool(3);
  const std::vector<float> ones(kElements, 1);
  std::vector<float> gradient(kElements);
  for (size_t i = 0; i < gradient.size(); ++i) gradient[i] = static_cast<float>(i % 1000) / 500 - 1;
  for (const std::string optimizer :
       {"adam", "momentum", "lamb", "adam moving_average.decay=0.9"}) {
    const auto slots =
        static_cast<size_t>(optimizer::slotCount(optimizer::decodeOptimizer(optimizer)));
    std::vector<Output> inputs;
    for (size_t i = 0; i < slots + 1; ++i) inputs.push_back(b_.variable("", {kElements}));
    inputs.push_back(b_.constant({kElements}, 1));
    inputs.push_back(b_.constant({}, 0, DType::kInt64));
    const graph::Node& node =
        graph_.node(b_.node("ApplyOptimizer", inputs, {{"optimizer", optimizer}}));
    // In place, and beside a reader of the old values.
    const auto after = [&](runtime::ComputePool* threads, bool is_read) {
      OptimizerAct act(graph_, node, threads);
      std::vector<std::unique_ptr<Variable>> all;
      std::vector<Variable*> variables;
      for (size_t i = 0; i < slots + 1; ++i) {
        all.push_back(
            std::make_unique<Variable>("w", graph::TensorSpec{DType::kFloat32, Shape{kElements}},
                                       ByteBudget::create(1 << 26, "the test")));
        all.back()->set(std::as_bytes(std::span<const float>(ones)));
        variables.push_back(all.back().get());
      }
      const Variable::Value held = is_read ? all[0]->read() : nullptr;
      for (const int64_t step : {0, 1}) {
        const std::vector<Bytes> given = {std::as_bytes(std::span<const float>(gradient)),
                                          std::as_bytes(std::span<const int64_t>(&step, 1))};
        act.run(variables, given);
      }
      std::vector<std::vector<float>> values;
      for (const Variable* const each : variables) {
        const Variable::Value value = each->read();
        values.emplace_back(value->as<float>().begin(), value->as<float>().end());
      }
      return values;
    };
    const auto of_one = after(nullptr, false);
    EXPECT_TRUE(after(&pool, false) == of_one) << optimizer;
    EXPECT_TRUE(after(&pool, true) == of_one) << optimizer;
  }
}

TEST_F(OptimizerActTest, ABatchWithoutRowsChangesNothing) {
  const Output table = b_.variable("t", {2, 1}), slot = b_.variable("t/slot", {2, 1});
  const graph::Node& node =
      graph_.node(b_.node("ApplySparseOptimizer",
                          {table, slot, b_.constant({0, 1}, 1), b_.constant({0}, 0, DType::kInt32),
                           b_.constant({}, 0, DType::kInt64)},
                          {{"optimizer", std::string("momentum learning_rate=1")}}, "update"));
  OptimizerAct act(graph_, node);
  const auto made = [](const std::vector<float>& values) {
    auto variable = std::make_unique<Variable>("t", graph::TensorSpec{DType::kFloat32, Shape{2, 1}},
                                               ByteBudget::create(1 << 20, "the test"));
    variable->set(std::as_bytes(std::span<const float>(values)));
    return variable;
  };
  const auto t = made({1, 2}), momentum = made({3, 4});
  const std::vector<Variable*> variables = {t.get(), momentum.get()};
  const int64_t step = 0;
  const std::vector<Bytes> inputs = {{}, {}, std::as_bytes(std::span<const int64_t>(&step, 1))};
  act.run(variables, inputs);
  const Variable::Value held = t->read();  // so the next value lies apart
  act.run(variables, inputs);
  EXPECT_THAT(t->read()->as<float>(), ElementsAre(1, 2));
  EXPECT_THAT(momentum->read()->as<float>(), ElementsAre(3, 4));
}

TEST_F(OptimizerActTest, WithoutRoomNothingHasChanged) {
  const auto act = update("momentum learning_rate=1");
  const auto w = variable({1, 1, 1}), slot = variable({0, 0, 0}, 12);
  const Variable::Value held = slot->read();  // so its next value needs room
  EXPECT_THAT(errorText([&] { run(*act, *w, *slot); }), HasSubstr("the test"));
  EXPECT_THAT(w->read()->as<float>(), ElementsAre(1, 1, 1));
}

TEST_F(OptimizerActTest, ASlotWithoutAValueIsNamed) {
  const auto act = update("momentum");
  const auto w = variable({1, 1, 1}), slot = variable({});
  EXPECT_THAT(errorText([&] { run(*act, *w, *slot); }), HasSubstr("has no value yet"));
  EXPECT_THAT(w->read()->as<float>(), ElementsAre(1, 1, 1));
}

TEST_F(OptimizerActTest, SettingsThatDoNotWorkAreNamedWithTheNode) {
  EXPECT_THAT(errorText([&] { update("momentom"); }),
              AllOf(HasSubstr("'update' (ApplyOptimizer)"), HasSubstr("did you mean 'momentum'?")));
}

}  // namespace
}  // namespace dtf::engine
