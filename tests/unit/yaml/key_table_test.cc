#include "common/yaml/key_table.h"

#include <gtest/gtest.h>

#include "common/yaml/keys.h"
#include "tests/support/repetitions.h"

namespace dtf::yaml {
namespace {

constexpr Key kKeys[] = {
    whole("units", 1, 10, "how many"),
    number("rate", {0, 1, true, true}, "how often"),
    choice("mode", "async|sync", "", "how"),
    later("tomorrow"),
};
constexpr Key kMoreKeys[] = {text("name", "who")};
constinit const Table kMore{"a.N", kMoreKeys};
constinit const Table kTable{"a.b, c.b", kKeys, &kMore};
constexpr const Table* kAll[] = {&kTable, &kMore};

TEST(KeyTable, BoundsAreOpenWhereTheySaySo) {
  const Key& rate = kTable.at("rate");
  EXPECT_FALSE(rate.inRange(0.0));
  EXPECT_TRUE(rate.inRange(0.5));
  EXPECT_FALSE(rate.inRange(1.0));
  EXPECT_EQ(rate.rangeText(), "more than 0 and less than 1");
  EXPECT_EQ(kTable.at("units").typeText(), "whole number from 1 to 10");
  EXPECT_EQ(wholes("stride", 1, 8, "").typeText(), "whole number from 1 to 8, or list of them");
}

TEST(KeyTable, HasTheKeysOfTheOneThatItGoesOnIn) {
  EXPECT_EQ(kTable.find("name"), &kMoreKeys[0]);
  EXPECT_EQ(kTable.find("nam"), nullptr);
  EXPECT_EQ(kTable.names(), (std::vector<std::string_view>{"units", "rate", "mode", "name"}))
      << "without what a later version has";
}

TEST(KeyTable, TellsWhereAKeyBelongs) {
  EXPECT_EQ(tableWith(kAll, "rate"), &kTable);
  EXPECT_EQ(tableWith(kAll, "rate", &kTable), nullptr);
  EXPECT_EQ(tableWith(kAll, "tomorrow"), nullptr);
  EXPECT_EQ(keyPath(kTable, "rate"), "a.b.rate") << "the first of several places";
  EXPECT_EQ(keyWithoutSpace(kAll, "units:50"), "units");
  EXPECT_EQ(keyWithoutSpace(kAll, "host:50"), "");
}

TEST(KeyTable, SuggestsTheNearestWord) {
  EXPECT_EQ(suggestion("unit", kTable.names()), " - did you mean 'units'?");
  EXPECT_EQ(suggestion("x", kTable.names()), " (one of units, rate, mode, name)");
}

TEST(KeyTable, SuggestsNoMoreThanAPersonReads) {
  const std::string longest(dtf::testing::repetitions(100'000u), 'x');
  const std::vector<std::string_view> words(1000, longest);
  const std::string text = suggestion("y", words);
  EXPECT_LT(text.size(), 3000u);
  EXPECT_TRUE(text.ends_with("x..., ...)")) << text;
}

}  // namespace
}  // namespace dtf::yaml
