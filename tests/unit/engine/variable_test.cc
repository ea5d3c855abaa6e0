#include "common/engine/variable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/unit/graph/error_text.h"

namespace dtf::engine {
namespace {

using graph::testing::errorText;
using ::testing::HasSubstr;

class VariableTest : public ::testing::Test {
 protected:
  void set(float value) { variable_.set(std::as_bytes(std::span(&value, 1))); }
  Variable::Value add(float delta) {
    return variable_.change(true, [delta](const std::byte* before, std::byte* after) {
      *reinterpret_cast<float*>(after) = *reinterpret_cast<const float*>(before) + delta;
    });
  }
  static float of(const Variable::Value& value) { return value->as<float>()[0]; }

  const std::shared_ptr<ByteBudget> budget_ = ByteBudget::create(3 * sizeof(float), "worker/1");
  Variable variable_{"w", {DType::kFloat32, {1}}, budget_};
};

TEST_F(VariableTest, WhoHoldsAValueKeepsItAsItWas) {
  set(1);
  const Variable::Value held = variable_.read();
  EXPECT_EQ(of(add(2)), 3);
  EXPECT_EQ(of(held), 1);
  EXPECT_EQ(of(variable_.read()), 3);
  set(7);
  EXPECT_EQ(of(held), 1);
  EXPECT_EQ(of(variable_.read()), 7);
}

TEST_F(VariableTest, WhatNobodyHoldsIsChangedInPlace) {
  set(1);
  const std::byte* const memory = variable_.read()->data();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(add(1)->data(), memory);
  const Variable::Value held = variable_.read();
  EXPECT_NE(add(1)->data(), memory);
  EXPECT_EQ(of(held), 6);
}

TEST_F(VariableTest, WithoutAValueItCanOnlyBeGivenOne) {
  EXPECT_FALSE(variable_.hasValue());
  EXPECT_THAT(errorText([&] { variable_.read(); }), HasSubstr("'w' has no value yet"));
  EXPECT_THAT(errorText([&] { add(1); }), HasSubstr("'w' has no value yet"));
  const auto given = variable_.change(false, [](const std::byte* before, std::byte* after) {
    EXPECT_EQ(before, nullptr);
    *reinterpret_cast<float*>(after) = 4;
  });
  EXPECT_EQ(of(given), 4);
  EXPECT_EQ(of(add(1)), 5);
}

TEST_F(VariableTest, AChangeThatFailsHasNoEffect) {
  const auto fail = [this] {
    variable_.change(false, [](const std::byte*, std::byte*) { throw std::runtime_error("no"); });
  };
  EXPECT_THROW(fail(), std::runtime_error);
  EXPECT_FALSE(variable_.hasValue());
  EXPECT_EQ(budget_->taken(), 0u);
  set(1);
  EXPECT_THROW(fail(), std::runtime_error);
  EXPECT_EQ(of(add(1)), 2);
}

TEST_F(VariableTest, WhatIsSetDuringAChangeWins) {
  set(1);
  const auto given = variable_.change(true, [this](const std::byte*, std::byte* after) {
    set(10);
    *reinterpret_cast<float*>(after) = 2;
  });
  EXPECT_EQ(of(given), 2);
  EXPECT_EQ(of(variable_.read()), 10);
}

TEST_F(VariableTest, ClearedItHasNoValueAndItsMemoryGoesWithItsHolders) {
  set(1);
  Variable::Value held = variable_.read();
  variable_.clear();
  EXPECT_FALSE(variable_.hasValue());
  EXPECT_EQ(of(held), 1);
  held = nullptr;
  EXPECT_EQ(budget_->taken(), 0u);
  set(2);
  variable_.change(true, [this](const std::byte*, std::byte*) { variable_.clear(); });
  EXPECT_FALSE(variable_.hasValue()) << "it wins over the change";
}

TEST_F(VariableTest, EveryValueThatIsThereIsCounted) {
  set(1);
  Variable::Value first = variable_.read();
  const Variable::Value second = add(1);
  const Variable::Value third = add(1);
  EXPECT_EQ(budget_->taken(), 3 * sizeof(float));
  EXPECT_THAT(errorText([&] { add(1); }), HasSubstr("no room for a value of the variable 'w'"));
  EXPECT_EQ(of(variable_.read()), 3);
  first = nullptr;
  EXPECT_EQ(budget_->taken(), 2 * sizeof(float));
  EXPECT_EQ(of(add(1)), 4);
}

// Threads of their own release the value while it is changed.
TEST_F(VariableTest, ValuesMayBeDroppedAnywhere) {
  set(0);
  for (int i = 0; i < 200; ++i) {
    std::thread holder([held = variable_.read(), i] { EXPECT_EQ(of(held), i); });
    add(1);
    holder.join();
  }
  EXPECT_EQ(of(variable_.read()), 200);
}

}  // namespace
}  // namespace dtf::engine
