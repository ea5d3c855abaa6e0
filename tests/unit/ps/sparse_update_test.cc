// 20 steps of every kind on some rows, some of them named twice, against golden.h.

#include "common/ps/sparse_update.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "common/base/error.h"
#include "tests/unit/ps/golden.h"

namespace dtf::ps {
namespace {

using golden::Kind;
using golden::randomValues;

constexpr size_t kRows = 6;
constexpr size_t kRowElements = 5;

struct Variable {
  Variable(const cluster::OptimizerSpec& spec, std::vector<float> values)
      : clock(spec), w(std::move(values)) {
    for (uint32_t i = 0; i < slotCount(spec); ++i) {
      slots[i] =
          isMovingAverage(spec, i) ? w : std::vector<float>(w.size(), initialSlotValue(spec, i));
    }
  }
  SparseTable table() {
    SparseTable table{w.data(), {}, kRows, w.size() / kRows};
    for (size_t i = 0; i < kSlotsMax; ++i)
      if (!slots[i].empty()) table.slots[i] = slots[i].data();
    return table;
  }
  void step(const std::vector<int64_t>& rows, const std::vector<float>& values) {
    updateRows(clock.next(), table(), rows, values);
  }
  OptimizerClock clock;
  std::vector<float> w;
  std::vector<float> slots[kSlotsMax];
};

// What a dense update would take: the sum of each row's gradients.
std::vector<double> denseOf(const std::vector<int64_t>& rows, const std::vector<float>& values) {
  std::vector<double> dense(kRows * kRowElements);
  for (size_t i = 0; i < values.size(); ++i)
    dense[static_cast<size_t>(rows[i / kRowElements]) * kRowElements + i % kRowElements] +=
        values[i];
  return dense;
}

bool movesAllRows(Kind kind) {
  return kind == Kind::kAdam || kind == Kind::kAdamW || kind == Kind::kLamb;
}

TEST(SparseUpdate, EveryKindFollowsTensorFlowsRowsForTwentySteps) {
  for (cluster::OptimizerSpec spec : golden::allSpecs()) {
    if (spec.kind == Kind::kAdamW) spec.weight_decay = 0;  // its own test below
    const std::vector<float> start = randomValues(1, 0, kRows * kRowElements);
    Variable variable(spec, start);
    cluster::OptimizerSpec rule = spec;
    if (spec.kind == Kind::kLars) rule.kind = Kind::kMomentum;
    golden::Reference reference(rule, start);
    Random random(7, 0);
    for (int t = 0; t < 20; ++t) {
      std::vector<int64_t> rows;
      for (int i = 0; i < 3; ++i) rows.push_back(static_cast<int64_t>(random.below(kRows - 1)));
      rows.push_back(rows[0]);
      const std::vector<float> values =
          randomValues(3, static_cast<uint64_t>(t), rows.size() * kRowElements);
      std::vector<bool> named(kRows);
      for (const int64_t row : rows) named[static_cast<size_t>(row)] = true;
      variable.step(rows, values);
      if (movesAllRows(spec.kind)) {
        reference.step(denseOf(rows, values));
      } else {
        reference.stepRows(denseOf(rows, values), named, kRowElements);
      }
      for (size_t i = 0; i < start.size(); ++i)
        ASSERT_NEAR(variable.w[i], reference.w[i], 5e-6)
            << golden::nameOf(spec) << " step " << t << " element " << i;
    }
  }
}

TEST(SparseUpdate, RowsThatAreNotNamedKeepTheirSlots) {
  for (const cluster::OptimizerSpec& spec : golden::allSpecs()) {
    Variable variable(spec, randomValues(1, 0, kRows * kRowElements));
    variable.step({2, 0}, randomValues(3, 0, 2 * kRowElements));
    const Variable before = variable;
    variable.step({4}, randomValues(3, 1, kRowElements));
    for (size_t i = 0; i < 2 * kRowElements; ++i) {  // row 0 has slots that could decay
      if (movesAllRows(spec.kind)) {
        if (i < kRowElements) {
          EXPECT_NE(variable.w[i], before.w[i]) << golden::nameOf(spec);
        }
        continue;
      }
      EXPECT_EQ(variable.w[i], before.w[i]) << golden::nameOf(spec);
      for (size_t s = 0; s < kSlotsMax; ++s)
        if (!variable.slots[s].empty()) {
          EXPECT_EQ(variable.slots[s][i], before.slots[s][i]);
        }
    }
  }
}

TEST(SparseUpdate, ARowNamedTwiceIsSummedBeforeItIsSquared) {
  cluster::OptimizerSpec spec = cluster::defaultOptimizer(Kind::kAdagrad);
  spec.learning_rate = 1;
  Variable variable(spec, std::vector<float>(kRows));
  variable.step({3, 3}, {1, 2});
  EXPECT_FLOAT_EQ(variable.slots[0][3], 0.1f + 9);
  EXPECT_FLOAT_EQ(variable.w[3], -3 / std::sqrt(9.1f));
}

// v_sparse of TensorFlow's sync_replicas_optimizer_test: two workers bring row 1 alone, and the mean
// of a step is that of its workers.
TEST(SparseUpdate, GivesTensorFlowsValuesOfTwoWorkersThatBringOneRow) {
  cluster::OptimizerSpec spec = cluster::defaultOptimizer(Kind::kGradientDescent);
  spec.learning_rate = 2;
  Variable variable(spec, {3, 4});
  const SparseTable table{variable.w.data(), {}, 2, 1};
  const auto apply = [&](const std::vector<float>& of_workers) {
    const std::vector<int64_t> rows(of_workers.size(), 1);
    std::vector<float> values = of_workers;
    for (float& value : values) value /= static_cast<float>(of_workers.size());
    updateRows(variable.clock.next(), table, rows, values);
  };
  apply({0.1f, 0.3f});
  EXPECT_EQ(variable.w[0], 3) << "row 0 has no gradient and must stay";
  EXPECT_FLOAT_EQ(variable.w[1], 3.6f);
  apply({0.1f, 0.3f});
  EXPECT_EQ(variable.w[0], 3);
  EXPECT_FLOAT_EQ(variable.w[1], 3.2f);
}

TEST(SparseUpdate, AdamWDecaysTheRowsNamedAlone) {
  cluster::OptimizerSpec spec = cluster::defaultOptimizer(Kind::kAdamW);
  spec.weight_decay = 0.25;
  spec.learning_rate = 1e-30;
  Variable variable(spec, std::vector<float>(kRows, 8));
  variable.step({1}, {1});
  EXPECT_FLOAT_EQ(variable.w[0], 8);
  EXPECT_FLOAT_EQ(variable.w[1], 6);
}

TEST(SparseUpdate, ClipsTheSumAddsL2AndAveragesAllRows) {
  cluster::OptimizerSpec spec = cluster::defaultOptimizer(Kind::kGradientDescent);
  spec.learning_rate = 1;
  spec.clip_by_value = 2;
  spec.weight_decay = 0.5;
  spec.moving_average_decay = 0.5;
  Variable variable(spec, std::vector<float>(kRows, 4));
  variable.slots[0].assign(kRows, 0);
  variable.step({5, 5}, {1.5f, 1.5f});
  EXPECT_EQ(variable.w[5], 4 - (2 + 2));
  EXPECT_EQ(variable.w[0], 4);
  EXPECT_EQ(variable.slots[0][0], 2);
  EXPECT_EQ(variable.slots[0][5], 0);
}

TEST(SparseUpdate, ARowBeyondTheTableChangesNothing) {
  for (const int64_t row : {int64_t{-1}, int64_t{kRows}}) {
    Variable variable(cluster::defaultOptimizer(Kind::kMomentum), std::vector<float>(kRows, 1));
    EXPECT_THROW(variable.step({0, row}, {1, 1}), Error);
    EXPECT_EQ(variable.w, std::vector<float>(kRows, 1));
  }
}

}  // namespace
}  // namespace dtf::ps
