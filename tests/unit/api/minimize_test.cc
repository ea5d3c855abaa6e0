#include <dtf/session.h>
#include <gmock/gmock.h>

#include <cmath>
#include <cstddef>

#include "tests/unit/api/errors.h"

namespace dtf::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

// loss = sum(w * x). Its gradient by w is x.
class ApiMinimize : public ::testing::Test {
 protected:
  ApiMinimize() {
    w_ = graph_.variable("w", {2}, "ones");
    loss_ = graph_.sum(graph_.mul(w_, graph_.placeholder("x", DTF_FLOAT32, {2})));
  }
  static Tensor pair(float a, float b) {
    const std::vector<float> values = {a, b};
    return Tensor::of<float>({2}, values);
  }

  Graph graph_;
  Output w_, loss_;
};

TEST_F(ApiMinimize, TrainsCountsAndClips) {
  const Minimized made =
      graph_.minimize(loss_, GradientDescent{.learning_rate = 0.5}, {.clip_by_global_norm = 5});
  Session session(graph_);
  EXPECT_THAT(session.uninitialized(), ElementsAre("w", "global_step"));
  session.initialize();
  EXPECT_THAT(session.uninitialized(), IsEmpty());
  const std::vector<std::string> fetches = {graph_.name(made.train), graph_.name(made.norm)};
  const auto values = session.run({{"x", pair(6, 8)}}, fetches);
  EXPECT_EQ(values.at(0).as<int64_t>()[0], 1);
  EXPECT_EQ(values.at(1).as<float>()[0], 10);
  const auto after = session.run({}, {"w", graph_.name(made.global_step)});
  EXPECT_THAT(after.at(0).as<float>(), ElementsAre(-0.5F, -1));
  EXPECT_EQ(after.at(1).as<int64_t>()[0], 1);
}

TEST_F(ApiMinimize, ARateFollowsTheGlobalStep) {
  const Minimized made =
      graph_.minimize(loss_, GradientDescent{.learning_rate = exponentialDecay(1, 1, 0.5)});
  Session session(graph_);
  session.initialize();
  for (int step = 0; step < 3; ++step)
    session.run({{"x", pair(1, 0)}}, {}, {graph_.name(made.train)});
  EXPECT_THAT(session.run({}, {"w"}).at(0).as<float>(), ElementsAre(1 - 1.75F, 1));
}

// The text is the node's; a job's file has the same names.
TEST(ApiOptimizers, EachIsItsNameWithTheSettingsThatAreGiven) {
  EXPECT_EQ(Optimizer(Adam{.learning_rate = 0.1, .beta2 = 0.99}).text(),
            "adam learning_rate=0.1 beta2=0.99");
  EXPECT_EQ(
      Optimizer(Momentum{.learning_rate = cosineDecay(0.1, 100).warmup(5), .use_nesterov = true})
          .text(),
      "momentum learning_rate=0.1 schedule=cosine decay_steps=100 alpha=0 warmup_steps=5 "
      "use_nesterov=true");
}

TEST(ApiOptimizers, SettingsAreNumbersOrBools) {
  Optimizer made("momentum");
  made.set("momentum", 0.9).set("use_nesterov", true).set("warmup_steps", 5).set("decay", 0.5F);
  made.set("none", Setting{}).set("some", Setting(2.5)).set("not", Switch(false));
  EXPECT_EQ(made.text(),
            "momentum momentum=0.9 use_nesterov=true warmup_steps=5 decay=0.5 some=2.5 not=false");
}

TEST(ApiOptimizers, EachIsTakenWithEverySetting) {
  const std::vector<Optimizer> all = {
      GradientDescent{.learning_rate = LearningRate(0.1).warmup(3), .weight_decay = 0.01},
      Momentum{.learning_rate = polynomialDecay(0.1, 9, 0, 2, true), .momentum = 0.5},
      Adagrad{.learning_rate = 0.1, .initial_accumulator_value = 0.5, .weight_decay = 0.1},
      Adadelta{.learning_rate = 0.1, .rho = 0.5, .epsilon = 1e-6, .weight_decay = 0.1},
      Adam{.learning_rate = 0.1, .beta1 = 0.5, .beta2 = 0.5, .epsilon = 1e-6, .weight_decay = 0.1},
      AdamW{.weight_decay = 0.1, .learning_rate = 0.1, .beta1 = 0.5, .beta2 = 0.5, .epsilon = 0.1},
      RmsProp{.learning_rate = 0.1,
              .decay = 0.5,
              .momentum = 0.5,
              .epsilon = 0.1,
              .centered = true,
              .weight_decay = 0.1},
      Ftrl{.learning_rate = 0.1,
           .learning_rate_power = -0.4,
           .initial_accumulator_value = 0.5,
           .l1_regularization_strength = 0.1,
           .l2_regularization_strength = 0.1,
           .l2_shrinkage_regularization_strength = 0.1},
      Lars{.learning_rate = 0.1,
           .momentum = 0.5,
           .weight_decay = 0.1,
           .eeta = 0.1,
           .epsilon = 0.1,
           .use_nesterov = true},
      Lamb{.learning_rate = 0.1, .beta1 = 0.5, .beta2 = 0.5, .epsilon = 0.1, .weight_decay = 0.1}};
  for (const Optimizer& optimizer : all) {
    Graph graph;
    const Output w = graph.variable("w", {2}, "ones");
    const Minimized made = graph.minimize(
        graph.sum(graph.mul(w, w)), optimizer,
        {.variables = {w}, .clip_by_value = 0.5, .moving_average_decay = 0.9, .global_step = "n"});
    Session session(graph);
    session.initialize(3);
    const auto values = session.run({}, {graph.name(made.train)});
    EXPECT_EQ(values.at(0).as<int64_t>()[0], 1) << optimizer.text();
    const auto after = session.run({}, {"w", "w/ExponentialMovingAverage"});
    EXPECT_TRUE(std::isfinite(after.at(0).as<float>()[0])) << optimizer.text();
    EXPECT_LT(after.at(0).as<float>()[0], 1) << optimizer.text();
    EXPECT_GT(after.at(1).as<float>()[0], after.at(0).as<float>()[0]) << optimizer.text();
  }
}

TEST_F(ApiMinimize, MistakesAreNamed) {
  EXPECT_THAT(refusal([&] { graph_.minimize(loss_, Optimizer("adem")); }),
              AllOf(StartsWith("78: "), HasSubstr("did you mean 'adam'?")));
  EXPECT_THAT(refusal([&] { graph_.minimize(loss_, AdamW{}); }),
              AllOf(StartsWith("78: "), HasSubstr("weight_decay")));
  EXPECT_THAT(refusal([&] { graph_.minimize(w_, Adam{}); }),
              AllOf(StartsWith("78: "), HasSubstr("float32 scalar")));
  EXPECT_THAT(refusal([&] { graph_.minimize({99, 0}, Adam{}); }), HasSubstr("no node 99"));
}

TEST_F(ApiMinimize, OptionsOfAnotherVersionAreToldApart) {
  dtf_minimize_options options{};
  options.size = sizeof(options) + 8;
  EXPECT_THAT(
      refusal([&] {
        check(dtf_graph_minimize(graph_.get(), loss_, "adam", &options, nullptr, nullptr, nullptr));
      }),
      StartsWith("2: "));
  options.size = offsetof(dtf_minimize_options, prefix);
  options.global_step = "beyond that size";
  dtf_output step{};
  check(dtf_graph_minimize(graph_.get(), loss_, "adam", &options, nullptr, &step, nullptr));
  EXPECT_EQ(graph_.name(step), "global_step:0");
}

TEST_F(ApiMinimize, APrefixIsTheGraphsScope) {
  const auto scope = graph_.scope("critic");
  EXPECT_EQ(graph_.name(graph_.minimize(loss_, Adam{}).train), "critic/Adam:0");
  EXPECT_EQ(graph_.name(graph_.counter("games")), "critic/games:0");
}

}  // namespace
}  // namespace dtf::testing
