#include "common/base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/error.h"

namespace dtf {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// Returns the error's message; "accepted" if there is none.
template <class Action>
std::string errorOf(Action action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadData);
    return error.message();
  }
  return "accepted";
}

TEST(Json, BracesMakeObjectsInTheirOrder) {
  const Json json = {{"z", 1},
                     {"a", {{"nested", true}}},
                     {"list", Json::array({1, "two", nullptr, {{"x", 0.5}}})},
                     {"empty", Json::object()}};
  EXPECT_EQ(json.dump(),
            R"({"z":1,"a":{"nested":true},"list":[1,"two",null,{"x":0.5}],"empty":{}})");
}

TEST(Json, TheLastOfEqualKeysCounts) {
  EXPECT_EQ((Json{{"a", 1}, {"b", 2}, {"a", 3}}).dump(), R"({"a":3,"b":2})");
}

TEST(Json, TakesListsMapsAndOptionals) {
  EXPECT_EQ(Json(std::vector<int64_t>{3, -4}).dump(), "[3,-4]");
  EXPECT_EQ(Json(std::array<float, 2>{0.5F, 2}).dump(), "[0.5,2.0]");
  const std::vector<int> counts = {1, 2, 3};
  EXPECT_EQ(Json(std::span(counts).first(2)).dump(), "[1,2]");
  EXPECT_EQ(Json(std::vector<bool>{true, false}).dump(), "[true,false]");
  EXPECT_EQ(Json(std::vector<std::vector<std::string>>{{"a"}, {}}).dump(), R"([["a"],[]])");
  const std::map<std::string, std::map<std::string, float>> nested = {{"b", {{"y", 1.5F}}},
                                                                      {"a", {}}};
  EXPECT_EQ(Json(nested).dump(), R"({"a":{},"b":{"y":1.5}})");
  EXPECT_EQ(orNull(std::optional<int>()).dump(), "null");
  EXPECT_EQ(orNull(std::optional(7)).dump(), "7");
}

TEST(Json, IndexingAddsToANullAndToAnObject) {
  Json json;
  json["a"]["b"] = 1;
  json["c"].push_back("x");
  json["c"].push_back({{"y", 2}});
  EXPECT_EQ(json.dump(), R"({"a":{"b":1},"c":["x",{"y":2}]})");
  json.update({{"c", 3}, {"d", 4}});
  EXPECT_EQ(json.dump(), R"({"a":{"b":1},"c":3,"d":4})");
  EXPECT_TRUE(json.erase("a"));
  EXPECT_FALSE(json.erase("a"));
  EXPECT_EQ(json.size(), 2u);
}

TEST(Json, ACopyIsDeepAndAMoveLeavesNull) {
  Json json = {{"a", Json::array({1})}};
  Json copy = json;
  copy["a"].push_back(2);
  EXPECT_EQ(json.dump(), R"({"a":[1]})");
  const Json moved = std::move(json);
  EXPECT_TRUE(json.isNull());  // NOLINT: the test reads a moved-from value
  EXPECT_EQ(moved.dump(), R"({"a":[1]})");
  copy = copy["a"];  // a part of itself
  EXPECT_EQ(copy.dump(), "[1,2]");
  copy = std::move(copy[1]);
  EXPECT_EQ(copy, 2);
}

TEST(Json, IntegersKeepAll64Bits) {
  const uint64_t most = std::numeric_limits<uint64_t>::max();
  EXPECT_EQ(Json(most).asUint64(), most);
  EXPECT_EQ(Json::parse("18446744073709551615").asUint64(), most);
  EXPECT_EQ(Json(std::numeric_limits<int64_t>::min()).asInt64(),
            std::numeric_limits<int64_t>::min());
  EXPECT_TRUE(Json::parse("18446744073709551616").isNumber());
  EXPECT_FALSE(Json::parse("18446744073709551616").isInteger());
  EXPECT_THAT(errorOf([&] { (void)Json(most).asInt64(); }), HasSubstr("must be an integer"));
  EXPECT_THAT(errorOf([] { (void)Json(int64_t{1} << 31).asInt(); }), HasSubstr("of 32 bits"));
  EXPECT_THAT(errorOf([] { (void)Json(-1).asUint64(); }), HasSubstr("is a negative number"));
  EXPECT_THAT(errorOf([] { (void)Json(1.0).asUint64(); }), HasSubstr("with a fraction"));
  EXPECT_EQ(Json(int64_t{-1} << 31).asInt(), std::numeric_limits<int>::min());
}

TEST(Json, NumbersAreComparedByValue) {
  EXPECT_EQ(Json(1), Json(1u));
  EXPECT_EQ(Json(1), Json(1.0));
  EXPECT_NE(Json(-1), Json(std::numeric_limits<uint64_t>::max()));
  EXPECT_NE(Json(1), Json(true));
  EXPECT_NE(Json(0), Json());
}

TEST(Json, TheOrderOfMembersDoesNotCount) {
  EXPECT_EQ((Json{{"a", 1}, {"b", 2}}), (Json{{"b", 2}, {"a", 1}}));
  EXPECT_NE((Json{{"a", 1}, {"b", 2}}), (Json{{"a", 1}, {"c", 2}}));
  EXPECT_NE((Json{{"a", 1}}), (Json{{"a", 1}, {"b", 2}}));
  EXPECT_NE(Json::array({1, 2}), Json::array({2, 1}));
}

TEST(Json, GettersNameTheKeyAndTheTypeThatIsThere) {
  const Json json = Json::parse(R"({"n": 5, "t": "x", "l": ["a", 1], "o": {}, "z": null})");
  EXPECT_EQ(errorOf([&] { json.stringAt("n"); }), "'n' must be a text, but is a number");
  EXPECT_EQ(errorOf([&] { (void)json.uint64At("t"); }),
            "'t' must be a number from 0 to 2^64 - 1, but is a text");
  EXPECT_EQ(errorOf([&] { (void)json.boolAt("z"); }), "'z' must be true or false, but is null");
  EXPECT_EQ(errorOf([&] { json.arrayAt("o"); }), "'o' must be a list, but is an object");
  EXPECT_EQ(errorOf([&] { json.objectAt("l"); }), "'l' must be an object, but is a list");
  EXPECT_EQ(errorOf([&] { json.at("gone"); }), "'gone' is missing");
  EXPECT_EQ(errorOf([&] { (void)json.intOr("t", 1); }),
            "'t' must be an integer of 32 bits, but is a text");
  EXPECT_EQ(errorOf([&] { json.at("l").asStrings(); }), "a value must be a text, but is a number");
  EXPECT_THAT(errorOf([&] { json.at("l").at("x"); }), StartsWith("'x' is missing: an object"));
  EXPECT_EQ(errorOf([&] { (void)json.at("l")[2]; }), "there is no item 2 in a list of 2");
  EXPECT_EQ(errorOf([&] { (void)json.begin(); }), "a value must be a list, but is an object");
  EXPECT_EQ(errorOf([&] { (void)json.at("l").members(); }),
            "a value must be an object, but is a list");
}

TEST(Json, GettersGiveTheValueOrTheDefault) {
  const Json json = Json::parse(R"({"n": 5, "d": 0.5, "t": "x", "y": true, "l": ["a", "b"]})");
  EXPECT_EQ(json.intAt("n"), 5);
  EXPECT_EQ(json.uint64At("n"), 5u);
  EXPECT_EQ(json.doubleAt("n"), 5.0);
  EXPECT_EQ(json.doubleAt("d"), 0.5);
  EXPECT_TRUE(json.boolAt("y"));
  EXPECT_EQ(json.stringOr("t", "z"), "x");
  EXPECT_EQ(json.stringOr("gone", "z"), "z");
  EXPECT_EQ(json.intOr("gone", 3), 3);
  EXPECT_EQ(json.doubleOr("d", 3), 0.5);
  EXPECT_EQ(json.find("gone"), nullptr);
  EXPECT_EQ(Json(1).find("gone"), nullptr);
  EXPECT_THAT(json.at("l").asStrings(), ElementsAre("a", "b"));
  std::string keys;
  for (const auto& [key, value] : json.members()) keys += key;
  EXPECT_EQ(keys, "ndtyl");
}

}  // namespace
}  // namespace dtf
