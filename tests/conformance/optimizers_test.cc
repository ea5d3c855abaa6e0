// Optimizers as ops, over tasks of this process and over tasks that serve on real sockets: after
// each of 25 steps the variables and their slots have the bits that a parameter server of a job has
// with the same settings.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "common/base/random.h"
#include "common/engine/session.h"
#include "common/optimizer/gradient_clip.h"
#include "common/optimizer/minimize.h"
#include "common/optimizer/optimizer_text.h"
#include "common/optimizer/sparse_gradient.h"
#include "tests/conformance/session_harness.h"
#include "tests/support/test_seed.h"
#include "tests/unit/arena/sparse_fixture.h"
#include "tests/unit/graph/error_text.h"
#include "tests/unit/optimizer/trainer.h"

namespace dtf::engine {
namespace {

using graph::Output;
using graph::testing::errorText;
using ::testing::AllOf;
using testing::floats;
using ::testing::HasSubstr;
using testing::kPs0;
using testing::kWorker0;
using testing::nameOf;
using testing::SessionHarness;

constexpr int kTrainedSteps = 25;
constexpr size_t kElements = 4099;  // more than two chunks, and no multiple of a vector

const std::vector<std::string> kDense = {
    "gradient_descent learning_rate=0.1",
    "gradient_descent learning_rate=0.1 weight_decay=0.01 clip_by_value=0.5",
    "gradient_descent schedule=cosine learning_rate=0.5 decay_steps=20 warmup_steps=5",
    "momentum learning_rate=0.1",
    "momentum learning_rate=0.1 use_nesterov=true schedule=exponential decay_steps=4 "
    "decay_rate=0.5 staircase=true",
    "adagrad learning_rate=0.1",
    "adadelta learning_rate=1",
    "adam learning_rate=0.01",
    "adam learning_rate=0.01 clip_by_global_norm=2 moving_average.decay=0.9",
    "adamw weight_decay=0.01",
    "rmsprop learning_rate=0.01 momentum=0.9",
    "rmsprop learning_rate=0.01 centered=true",
    "ftrl learning_rate=0.1 l1_regularization_strength=0.01",
    "lars learning_rate=1 use_nesterov=true",
    "lamb learning_rate=0.01 weight_decay=0.01 schedule=polynomial decay_steps=10 power=2"};

const std::vector<std::string> kSparse = {
    "gradient_descent learning_rate=0.1",
    "momentum learning_rate=0.1 use_nesterov=true",
    "adagrad learning_rate=0.1",
    "adadelta learning_rate=1",
    "adam learning_rate=0.01 clip_by_global_norm=0.5",
    "adamw weight_decay=0.01",
    "rmsprop learning_rate=0.01 momentum=0.9",
    "ftrl learning_rate=0.1",
    "momentum learning_rate=0.1 moving_average.decay=0.9 clip_by_value=0.3"};

std::vector<float> drawn(Random& random, size_t count) {
  std::vector<float> values(count);
  for (float& value : values) value = random.normal();
  return values;
}

bool haveSameBits(std::span<const float> a, const float* b) {
  return std::memcmp(a.data(), b, a.size_bytes()) == 0;
}

// True: over sockets. The worker computes the loss, ps/0 has the variables.
class OptimizersSuite : public ::testing::TestWithParam<bool> {
 protected:
  Output onPs(const std::string& name, Shape shape, const std::string& initializer = "zeros") {
    const auto there = b_.deviceScope("/job:ps/task:0");
    return b_.variable(name, std::move(shape), initializer);
  }
  std::unique_ptr<Session> open() { return std::make_unique<Session>(graph_, harness_.connect()); }

  // Compares the variable and its slots.
  static void expectEqual(Session& session, const std::string& variable,
                          const optimizer::ParameterStore& store, uint64_t offset, size_t count) {
    std::vector<std::string> names = {variable};
    for (uint32_t slot = 0; slot < store.slotCount(); ++slot)
      names.push_back(variable + "/" + store.slotName(slot));
    const std::vector<Tensor> values = session.run({}, names);
    EXPECT_TRUE(haveSameBits(values[0].as<float>(), store.current()->data() + offset)) << names[0];
    for (uint32_t slot = 0; slot < store.slotCount(); ++slot)
      EXPECT_TRUE(haveSameBits(values[slot + 1].as<float>(), store.slot(slot).data() + offset))
          << names[slot + 1];
    EXPECT_EQ(values[0].as<float>().size(), count);
  }

  graph::Graph graph_{graph::standardOps()};
  graph::Builder b_{graph_};
  SessionHarness harness_{GetParam(), {graph::fullDevice(kWorker0), graph::fullDevice(kPs0)}};
};

INSTANTIATE_TEST_SUITE_P(Tasks, OptimizersSuite, ::testing::Bool(), nameOf);

// The gradient of sum(w * x) by w is x.
class DenseOptimizers : public OptimizersSuite {};
INSTANTIATE_TEST_SUITE_P(Tasks, DenseOptimizers, ::testing::Bool(), nameOf);

TEST_P(DenseOptimizers, EachHasTheBitsOfAParameterServer) {
  Random random(dtf::testing::testSeed(), 0);
  SCOPED_TRACE(dtf::testing::testSeed());
  const Output x = b_.placeholder("x", DType::kFloat32, Shape{kElements});
  std::vector<std::string> trains;
  std::vector<std::unique_ptr<optimizer::Trainer>> stores;
  std::vector<std::string> variables;
  for (const std::string& text : kDense) {
    variables.push_back("w" + std::to_string(variables.size()));
    const Output w = onPs(variables.back(), Shape{kElements});
    const auto spec = optimizer::decodeOptimizer(text);
    const optimizer::Minimized made = optimizer::minimize(
        graph_, b_.sum(b_.mul(w, x)), spec, {.global_step = variables.back() + "/step"});
    trains.push_back(graph_.node(made.train.node).name);
    stores.push_back(std::make_unique<optimizer::Trainer>(spec, drawn(random, kElements)));
  }
  const auto session = open();
  session->initialize(7);
  for (size_t i = 0; i < stores.size(); ++i) {
    const std::vector<float> initial(stores[i]->w(), stores[i]->w() + kElements);
    session->setVariable(variables[i], floats(Shape{kElements}, initial));
    const auto average = graph_.find(variables[i] + "/ExponentialMovingAverage");
    if (average != nullptr) session->setVariable(average->name, floats({kElements}, initial));
  }
  for (int step = 0; step < kTrainedSteps; ++step) {
    std::vector<float> gradient = drawn(random, kElements);
    const Tensor fed = floats(Shape{kElements}, gradient);
    const std::vector<Feed> feeds = {{"x", &fed}};
    session->run(feeds, {}, trains);
    for (size_t i = 0; i < stores.size(); ++i) {
      std::vector<float> clipped = gradient;
      const double norm = stores[i]->store.optimizer().clip_by_global_norm;
      const std::span<float> all(clipped);
      if (norm > 0) optimizer::clipByGlobalNorm({&all, 1}, norm);
      stores[i]->step({clipped});
    }
  }
  for (size_t i = 0; i < stores.size(); ++i) {
    SCOPED_TRACE(kDense[i]);
    expectEqual(*session, variables[i], stores[i]->store, 0, kElements);
  }
}

// A look-up in a table, with a row that is named twice and a row that never is.
class SparseOptimizers : public OptimizersSuite {};
INSTANTIATE_TEST_SUITE_P(Tasks, SparseOptimizers, ::testing::Bool(), nameOf);

TEST_P(SparseOptimizers, EachHasTheBitsOfAParameterServer) {
  constexpr uint32_t kRows = 50, kWide = 3, kBatch = 16;
  Random random(dtf::testing::testSeed(), 1);
  SCOPED_TRACE(dtf::testing::testSeed());
  const Output ids = b_.placeholder("ids", DType::kInt32, Shape{kBatch});
  const Output x = b_.placeholder("x", DType::kFloat32, Shape{kBatch, kWide});
  std::vector<std::string> trains, tables;
  std::vector<std::unique_ptr<optimizer::ParameterStore>> stores;
  const std::vector<float> initial = drawn(random, size_t{kRows} * kWide);
  for (const std::string& text : kSparse) {
    tables.push_back("t" + std::to_string(tables.size()));
    const Output table = onPs(tables.back(), Shape{kRows, kWide});
    const auto spec = optimizer::decodeOptimizer(text);
    const optimizer::Minimized made =
        optimizer::minimize(graph_, b_.sum(b_.mul(b_.gather(table, ids), x)), spec,
                            {.global_step = tables.back() + "/step"});
    trains.push_back(graph_.node(made.train.node).name);
    stores.push_back(std::make_unique<optimizer::ParameterStore>(
        spec, 160, std::vector<arena::Slice>{}, std::vector<optimizer::MovingRange>{},
        std::vector<arena::SparseSlice>{{0, kRows, kWide}}));
    std::vector<float> padded = initial;
    padded.resize(160);
    stores.back()->initialise(padded);
  }
  ASSERT_TRUE(std::any_of(graph_.nodes().begin(), graph_.nodes().end(),
                          [](const auto& node) { return node.op == "ApplySparseOptimizer"; }));
  const auto session = open();
  session->initialize(7);
  for (const std::string& table : tables) {
    session->setVariable(table, floats({kRows, kWide}, initial));
    const auto average = graph_.find(table + "/ExponentialMovingAverage");
    if (average != nullptr) session->setVariable(average->name, floats({kRows, kWide}, initial));
  }
  for (int step = 0; step < kTrainedSteps; ++step) {
    Tensor named(DType::kInt32, Shape{kBatch});
    for (int32_t& id : named.as<int32_t>()) id = static_cast<int32_t>(random.below(kRows - 1));
    named.as<int32_t>()[1] = named.as<int32_t>()[0];
    const std::vector<float> gradient = drawn(random, size_t{kBatch} * kWide);
    const Tensor fed = floats({kBatch, kWide}, gradient);
    const std::vector<Feed> feeds = {{"ids", &named}, {"x", &fed}};
    session->run(feeds, {}, trains);
    for (const auto& store : stores) {
      optimizer::SparseGradient rows(kRows, kWide);
      rows.set({DType::kInt32, named.data(), kBatch, gradient.data()});
      const std::span<float> values = rows.values();
      const double norm = store->optimizer().clip_by_global_norm;
      if (norm > 0) optimizer::clipByGlobalNorm({&values, 1}, norm);
      arena::Rows of;
      for (size_t i = 0; i < rows.rows().size(); ++i) {
        const auto begin = values.begin() + static_cast<ptrdiff_t>(i * kWide);
        of[rows.rows()[i]] = std::vector<float>(begin, begin + kWide);
      }
      store->apply({arena::makeGradient(store->gradientLayout(), {}, {of})});
    }
  }
  for (size_t i = 0; i < stores.size(); ++i) {
    SCOPED_TRACE(kSparse[i]);
    expectEqual(*session, tables[i], *stores[i], 0, size_t{kRows} * kWide);
  }
}

TEST_P(OptimizersSuite, CountsStepsAndReturnsTheCount) {
  const Output w = onPs("w", Shape{2});
  const Output x = b_.placeholder("x", DType::kFloat32, Shape{2});
  const optimizer::Minimized made = optimizer::minimize(
      graph_, b_.sum(b_.mul(w, x)), optimizer::decodeOptimizer("gradient_descent"));
  const std::string train = graph_.node(made.train.node).name;
  const auto session = open();
  const Tensor fed = floats({2}, {1, 2});
  const std::vector<Feed> feeds = {{"x", &fed}};
  EXPECT_THAT(errorText([&] { session->run(feeds, {}, std::vector<std::string>{train}); }),
              AllOf(HasSubstr("has no value yet"), HasSubstr("initialize")));
  session->initialize(1);
  for (int64_t step = 1; step <= 3; ++step) {
    const std::vector<std::string> fetches = {train};
    EXPECT_EQ(session->run(feeds, fetches).at(0).as<int64_t>()[0], step);
  }
  const std::vector<std::string> both = {"global_step", "w"};
  const std::vector<Tensor> values = session->run({}, both);
  EXPECT_EQ(values[0].as<int64_t>()[0], 3);
  EXPECT_NEAR(values[1].as<float>()[1], -0.06, 1e-6);
}

TEST_P(OptimizersSuite, AGradientThatIsNotFiniteChangesNothing) {
  const Output w = onPs("w", Shape{2}, "ones");
  const Output x = b_.placeholder("x", DType::kFloat32, Shape{2});
  const optimizer::Minimized made = optimizer::minimize(
      graph_, b_.sum(b_.mul(w, x)), optimizer::decodeOptimizer("momentum clip_by_global_norm=1"));
  const std::vector<std::string> train = {graph_.node(made.train.node).name};
  const auto session = open();
  session->initialize(1);
  const Tensor fed = floats({2}, {1, std::numeric_limits<float>::infinity()});
  const std::vector<Feed> feeds = {{"x", &fed}};
  EXPECT_THAT(errorText([&] { session->run(feeds, {}, train); }),
              AllOf(HasSubstr("'Momentum/clip' (ClipByGlobalNorm)"), HasSubstr("inf")));
  const std::vector<std::string> all = {"w", "w/Momentum", "global_step"};
  const std::vector<Tensor> values = session->run({}, all);
  EXPECT_EQ(values[0].as<float>()[0], 1);
  EXPECT_EQ(values[1].as<float>()[0], 0);
  EXPECT_EQ(values[2].as<int64_t>()[0], 0);
}

TEST_P(OptimizersSuite, AnIndexBeyondTheTableIsRefusedBeforeAnythingChanges) {
  const Output table = onPs("t", Shape{4, 2}, "ones");
  const Output rows = b_.placeholder("rows", DType::kFloat32, Shape{1, 2});
  const Output ids = b_.placeholder("ids", DType::kInt64, Shape{1});
  const Output step = b_.constant(Shape(), 0, DType::kInt64);
  b_.node("ApplySparseOptimizer", {table, rows, ids, step},
          {{"optimizer", std::string("gradient_descent learning_rate=1")}}, "update");
  const auto session = open();
  session->initialize(1);
  const Tensor ones = floats({1, 2}, {1, 1});
  Tensor id(DType::kInt64, Shape{1});
  const std::vector<Feed> feeds = {{"rows", &ones}, {"ids", &id}};
  const std::vector<std::string> update = {"update"}, fetch = {"t"};
  for (const int64_t bad : {int64_t{-1}, int64_t{4}, int64_t{1} << 40}) {
    id.as<int64_t>()[0] = bad;
    EXPECT_THAT(errorText([&] { session->run(feeds, {}, update); }),
                AllOf(HasSubstr("'update' (ApplySparseOptimizer)"), HasSubstr("no row of the 4")));
  }
  EXPECT_EQ(session->run({}, fetch)[0].as<float>()[0], 1);
  id.as<int64_t>()[0] = 0;
  session->run(feeds, {}, update);
  EXPECT_EQ(session->run({}, fetch)[0].as<float>()[0], 0);
}

TEST_P(OptimizersSuite, OneVariableUnderTwoNamesIsRefused) {
  const auto variable = [&](const std::string& name) {
    return Output{b_.node("Variable", {},
                          {{"shape", Shape{2}},
                           {"initializer", std::string("zeros")},
                           {"shared_name", std::string("same")}},
                          name)};
  };
  const Output step = b_.constant(Shape(), 0, DType::kInt64);
  b_.node("ApplyOptimizer", {variable("a"), variable("b"), b_.constant({2}, 1), step},
          {{"optimizer", std::string("momentum")}}, "update");
  const auto session = open();
  session->initialize(1);
  const std::vector<std::string> update = {"update"};
  EXPECT_THAT(errorText([&] { session->run({}, {}, update); }), HasSubstr("are one variable"));
}

TEST_P(OptimizersSuite, AWrongNumberOfSlotsIsNamed) {
  const Output w = onPs("w", Shape{2});
  const Output step = b_.constant(Shape(), 0, DType::kInt64);
  b_.node("ApplyOptimizer", {w, b_.constant({2}, 1), step}, {{"optimizer", std::string("adam")}},
          "update");
  const auto session = open();
  const std::vector<std::string> update = {"update"};
  EXPECT_THAT(errorText([&] { session->run({}, {}, update); }),
              AllOf(HasSubstr("'update'"), HasSubstr("adam has 2 slots"), HasSubstr("got 0")));
}

TEST_P(OptimizersSuite, AVariableThatAReaderHoldsIsUpdatedBesideIt) {
  const Output w = onPs("w", Shape{2}, "ones");
  const Output x = b_.placeholder("x", DType::kFloat32, Shape{2});
  const optimizer::Minimized made = optimizer::minimize(
      graph_, b_.sum(b_.mul(w, x)), optimizer::decodeOptimizer("momentum learning_rate=1"));
  const std::vector<std::string> train = {graph_.node(made.train.node).name};
  const auto session = open();
  session->initialize(1);
  const Tensor fed = floats({2}, {1, 2});
  const std::vector<Feed> feeds = {{"x", &fed}};
  const std::vector<std::string> fetches = {"w", "w/Momentum"};
  const std::vector<Tensor> seen = session->run(feeds, fetches, train);
  EXPECT_EQ(seen[0].as<float>()[1], 1) << "as the step began";
  EXPECT_EQ(seen[1].as<float>()[1], 0);
  const std::vector<Tensor> after = session->run({}, fetches);
  EXPECT_EQ(after[0].as<float>()[1], -1);
  EXPECT_EQ(after[1].as<float>()[1], 2);
}

}  // namespace
}  // namespace dtf::engine
