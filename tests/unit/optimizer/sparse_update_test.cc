// 20 steps of every kind on some rows, against golden.h.

#include "common/optimizer/sparse_update.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "common/base/random.h"
#include "tests/unit/arena/sparse_fixture.h"
#include "tests/unit/optimizer/golden.h"

namespace dtf::optimizer {
namespace {

using namespace arena;
using golden::Kind;
using golden::randomValues;

constexpr size_t kRows = 6;
constexpr size_t kRowElements = 5;

// A table of `kRows` rows behind 16 elements of another variable.
struct Variable {
  static constexpr size_t kOffset = 16;
  Variable(const cluster::OptimizerSpec& spec, std::vector<float> values)
      : clock(spec), w(std::move(values)) {
    for (uint32_t i = 0; i < slotCount(spec); ++i) {
      slots[i] =
          isMovingAverage(spec, i) ? w : std::vector<float>(w.size(), initialSlotValue(spec, i));
    }
  }
  // Applies the mean of `gradients` in pieces of `piece` elements, the last piece first.
  void stepAll(const std::vector<Rows>& gradients, size_t piece = SIZE_MAX) {
    const arena::SparseSlice slice{kOffset, kRows, w.size() / kRows};
    const arena::GradientLayout layout(slice.end(), {slice});
    std::vector<arena::Gradient> made;
    std::vector<arena::RowsView> views;
    for (const Rows& rows : gradients) made.push_back(makeGradient(layout, {}, {rows}));
    for (const arena::Gradient& gradient : made) views.push_back(layout.rows(gradient, 0));
    const std::vector<float> old = arenaOf(w);
    std::vector<float> result(old.size());
    std::vector<float> slot_arenas[kSlotsMax];
    UpdateArrays arrays;
    arrays.old_parameters = old.data();
    arrays.new_parameters = result.data();
    for (size_t i = 0; i < kSlotsMax; ++i) {
      if (slots[i].empty()) continue;
      slot_arenas[i] = arenaOf(slots[i]);
      arrays.slots[i] = slot_arenas[i].data();
    }
    const UpdateConstants constants = clock.next();
    for (size_t end = w.size(); end > 0;) {
      const size_t begin = end - std::min(end, piece);
      updateRows(constants, arrays, slice, views, kOffset + begin, kOffset + end,
                 OtherRows::kCopied);
      end = begin;
    }
    w.assign(result.begin() + kOffset, result.end());
    for (size_t i = 0; i < kSlotsMax; ++i)
      if (!slots[i].empty())
        slots[i].assign(slot_arenas[i].begin() + kOffset, slot_arenas[i].end());
  }
  static std::vector<float> arenaOf(const std::vector<float>& values) {
    std::vector<float> arena(kOffset + values.size());
    std::ranges::copy(values, arena.begin() + kOffset);
    return arena;
  }
  void step(const Rows& rows) { stepAll({rows}); }
  OptimizerClock clock;
  std::vector<float> w;
  std::vector<float> slots[kSlotsMax];
};

Rows randomRows(uint64_t seed, uint64_t stream) {
  Random random(seed, stream);
  Rows rows;
  for (int i = 0; i < 3; ++i) {
    std::vector<float>& row = rows[static_cast<uint32_t>(random.below(kRows - 1))];
    row.assign(kRowElements, 0);
    for (float& value : row) value = random.uniform(-1, 1);
  }
  return rows;
}

// The same gradient for a dense update.
std::vector<double> denseOf(const Rows& rows) {
  std::vector<double> dense(kRows * kRowElements);
  for (const auto& [row, values] : rows)
    std::ranges::copy(values, dense.begin() + row * kRowElements);
  return dense;
}

std::vector<cluster::OptimizerSpec> sparseSpecs() {
  std::vector<cluster::OptimizerSpec> specs = golden::allSpecs();
  std::erase_if(specs, [](const auto& spec) { return !updatesRows(spec); });
  return specs;
}

bool movesAllRows(Kind kind) {
  return kind == Kind::kAdam || kind == Kind::kAdamW;
}

TEST(SparseUpdate, IsNotForNormsOfWholeVariablesNorL2) {
  for (const cluster::OptimizerSpec& spec : golden::allSpecs())
    EXPECT_EQ(updatesRows(spec), spec.kind != Kind::kLars && spec.kind != Kind::kLamb)
        << golden::nameOf(spec);
  cluster::OptimizerSpec decayed = cluster::defaultOptimizer(Kind::kMomentum);
  decayed.weight_decay = 0.1;
  EXPECT_FALSE(updatesRows(decayed));
  decayed.kind = Kind::kAdamW;
  EXPECT_TRUE(updatesRows(decayed)) << "its decay is no part of the gradient";
}

TEST(SparseUpdate, EveryKindFollowsTensorFlowsRowsForTwentySteps) {
  for (cluster::OptimizerSpec spec : sparseSpecs()) {
    if (spec.kind == Kind::kAdamW) spec.weight_decay = 0;  // has its own test below
    const std::vector<float> start = randomValues(1, 0, kRows * kRowElements);
    Variable variable(spec, start);
    golden::Reference reference(spec, start);
    for (uint64_t t = 0; t < 20; ++t) {
      const Rows rows = randomRows(7, t);
      std::vector<bool> named(kRows);
      for (const auto& [row, values] : rows) named[row] = true;
      variable.step(rows);
      if (movesAllRows(spec.kind)) {
        reference.step(denseOf(rows));
      } else {
        reference.stepRows(denseOf(rows), named, kRowElements);
      }
      for (size_t i = 0; i < start.size(); ++i)
        ASSERT_NEAR(variable.w[i], reference.w[i], 5e-6)
            << golden::nameOf(spec) << " step " << t << " element " << i;
    }
  }
}

// A sparse update has the bits of the dense one if every row moves alike.
TEST(SparseUpdate, OfGradientDescentAndAdamHasTheBitsOfTheDense) {
  for (const Kind kind : {Kind::kGradientDescent, Kind::kAdam}) {
    cluster::OptimizerSpec spec = cluster::defaultOptimizer(kind);
    const std::vector<float> start = randomValues(1, 0, kRows * kRowElements);
    Variable sparse(spec, start);
    Variable dense(spec, start);
    for (uint64_t t = 0; t < 20; ++t) {
      const Rows rows = randomRows(7, t);
      sparse.step(rows);
      const std::vector<double> exact = denseOf(rows);
      const std::vector<float> gradient(exact.begin(), exact.end());
      const float* const gradients[] = {gradient.data()};
      std::vector<float> result(start.size());
      UpdateArrays arrays{dense.w.data(), result.data(), {}, gradients};
      for (size_t i = 0; i < kSlotsMax; ++i)
        if (!dense.slots[i].empty()) arrays.slots[i] = dense.slots[i].data();
      updateRange(dense.clock.next(), arrays, 0, start.size());
      dense.w = result;
      ASSERT_EQ(std::memcmp(sparse.w.data(), dense.w.data(), start.size() * sizeof(float)), 0)
          << golden::nameOf(spec) << " step " << t;
    }
  }
}

TEST(SparseUpdate, HasTheSameBitsForEverySplit) {
  for (cluster::OptimizerSpec spec : sparseSpecs()) {
    spec.moving_average_decay = 0.9;
    const std::vector<float> start = randomValues(1, 0, kRows * kRowElements);
    Variable whole(spec, start);
    Variable split(spec, start);
    for (uint64_t t = 0; t < 3; ++t) {
      const std::vector<Rows> gradients = {randomRows(7, t), randomRows(8, t), {}};
      whole.stepAll(gradients);
      split.stepAll(gradients, 3);  // 3 doesn't divide a row
    }
    EXPECT_EQ(whole.w, split.w) << golden::nameOf(spec);
    for (size_t i = 0; i < kSlotsMax; ++i)
      EXPECT_EQ(whole.slots[i], split.slots[i]) << golden::nameOf(spec);
  }
}

TEST(SparseUpdate, RowsThatAreNotNamedKeepTheirSlots) {
  for (const cluster::OptimizerSpec& spec : sparseSpecs()) {
    Variable variable(spec, randomValues(1, 0, kRows * kRowElements));
    variable.step({{0, randomValues(3, 0, kRowElements)}, {2, randomValues(3, 1, kRowElements)}});
    const Variable before = variable;
    variable.step({{4, randomValues(3, 2, kRowElements)}});
    for (size_t i = 0; i < kRowElements; ++i) {  // row 0 has slots that could decay
      if (movesAllRows(spec.kind)) {
        EXPECT_NE(variable.w[i], before.w[i]) << golden::nameOf(spec);
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

// TensorFlow's sparse accumulator: a row that two of three workers name takes the mean of two.
TEST(SparseUpdate, ARowTakesTheMeanOfThoseThatNameIt) {
  cluster::OptimizerSpec spec = cluster::defaultOptimizer(Kind::kGradientDescent);
  spec.learning_rate = 1;
  Variable variable(spec, std::vector<float>(kRows));
  variable.stepAll({{{1, {1}}, {2, {6}}}, {{2, {4}}}, {{5, {8}}}});
  EXPECT_EQ(variable.w, (std::vector<float>{0, -1, -5, 0, 0, -8}));
}

TEST(SparseUpdate, AdamWDecaysTheRowsNamedAlone) {
  cluster::OptimizerSpec spec = cluster::defaultOptimizer(Kind::kAdamW);
  spec.weight_decay = 0.5;
  spec.learning_rate = 0.5;
  Variable variable(spec, std::vector<float>(kRows, 8));
  variable.step({{1, {0}}});
  EXPECT_FLOAT_EQ(variable.w[0], 8);
  EXPECT_FLOAT_EQ(variable.w[1], 6);
}

TEST(SparseUpdate, ClipsTheMeanAndAveragesAllRows) {
  cluster::OptimizerSpec spec = cluster::defaultOptimizer(Kind::kGradientDescent);
  spec.learning_rate = 1;
  spec.clip_by_value = 2;
  spec.moving_average_decay = 0.5;
  Variable variable(spec, std::vector<float>(kRows, 4));
  variable.slots[0].assign(kRows, 0);
  variable.step({{5, {3}}});
  EXPECT_EQ(variable.w[5], 4 - 2);
  EXPECT_EQ(variable.w[0], 4);
  EXPECT_EQ(variable.slots[0][0], 2);
  EXPECT_EQ(variable.slots[0][5], 1);
}

}  // namespace
}  // namespace dtf::optimizer
