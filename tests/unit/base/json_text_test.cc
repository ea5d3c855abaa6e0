// Json as text: read with bounds, written as nlohmann's serializer does.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/base/json.h"
#include "common/base/random.h"

namespace dtf {
namespace {

using ::testing::StartsWith;

// Returns the error's message; "accepted" if there is none.
std::string refusal(const std::string& text, int depth_max = 4, JsonVisitor* visitor = nullptr) {
  try {
    Json::parse(text, depth_max, visitor);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadData);
    return error.message();
  }
  return "accepted";
}

TEST(JsonText, TextsOfEveryKindSurviveARoundTrip) {
  for (const char* text :
       {"null", "true", "[]", "{}", "-1", "18446744073709551615", "-9223372036854775808",
        R"({"b":[{"c":null},[[]]],"a":"x\n\"\\\u0000"})", R"("äöü 😀")", "1e+100", "-0.0"})
    EXPECT_EQ(Json::parse(text).dump(), text);
}

TEST(JsonText, IsLaidOutAsNlohmannsSerializerDoes) {
  const char* text = R"({"a":[1,2,{"b":[],"c":{}}],"d":{"e":"\u00e4\"","f":[[0.25]]}})";
  for (const int indent : {-1, 0, 1, 2, 4})
    EXPECT_EQ(Json::parse(text).dump(indent), nlohmann::ordered_json::parse(text).dump(indent));
}

// Files and tests depend on the digits.
TEST(JsonText, NumbersHaveTheDigitsOfNlohmannsAndComeBackToTheBit) {
  Random random(7);
  std::vector<double> numbers = {
      0.0,    -0.0,       0.1,    1.0,          1e15,
      1e16,   1e22,       5e-324, 0.1F,         1 / 3.0,
      2.5e-7, 123456.789, 1e300,  4294967296.0, std::numeric_limits<double>::max()};
  for (int i = 0; i < 20'000; ++i) {
    const auto bits = std::bit_cast<double>(random.next64());
    if (std::isfinite(bits)) numbers.push_back(bits);
    numbers.push_back(static_cast<float>(bits));
  }
  for (const double number : numbers) {
    const std::string text = Json(number).dump();
    EXPECT_EQ(text, nlohmann::json(number).dump());
    if (!std::isfinite(number)) continue;
    const double again = Json::parse(text).asDouble();
    EXPECT_EQ(std::bit_cast<uint64_t>(again), std::bit_cast<uint64_t>(number)) << text;
  }
}

TEST(JsonText, WhatIsNoNumberIsWrittenAsNull) {
  EXPECT_EQ(Json(std::nan("")).dump(), "null");
  EXPECT_EQ(Json(-std::numeric_limits<double>::infinity()).dump(), "null");
}

TEST(JsonText, BytesThatAreNoUtf8AreReplacedOrRefused) {
  const Json json = {{"k\xff", "a\xc3"}};
  EXPECT_EQ(json.dump(), "{\"k\xef\xbf\xbd\":\"a\xef\xbf\xbd\"}");
  EXPECT_EQ(json.dumpAscii(), R"({"k\ufffd":"a\ufffd"})");
  EXPECT_THROW(json.dumpStrict(), Error);
  EXPECT_EQ(Json("ä").dumpAscii(), R"("\u00e4")");
  EXPECT_EQ(Json("ä").dumpStrict(), "\"ä\"");
}

TEST(JsonText, AKeyTwiceInOneObjectIsRefused) {
  EXPECT_EQ(refusal(R"({"a": 1, "a": 1})"), "the key 'a' appears twice");
  EXPECT_EQ(refusal(R"([{"x": {"a": 1, "b": 2, "a": 3}}])"), "the key 'a' appears twice");
}

TEST(JsonText, TheSameKeyInDifferentObjectsIsNoDuplicate) {
  EXPECT_EQ(refusal(R"({"a": {"a": 1}, "b": [{"a": 1}, {"a": 2}]})"), "accepted");
}

TEST(JsonText, ALongKeyIsCutInTheMessage) {
  const std::string key(100'000, 'k');
  EXPECT_LT(refusal("{\"" + key + "\": 1, \"" + key + "\": 2}").size(), 300u);
}

TEST(JsonText, NestingHasABound) {
  EXPECT_EQ(refusal("[[[[1]]]]", 4), "accepted");
  EXPECT_EQ(refusal("[[[[[1]]]]]", 4), "it is nested deeper than 4 levels");
  EXPECT_EQ(refusal(R"({"a":[{"b":[{}]}]})", 4), "it is nested deeper than 4 levels");
  EXPECT_EQ(refusal(std::string(1'000'000, '['), kJsonDepthMax),
            "it is nested deeper than 64 levels");
}

TEST(JsonText, WhatIsNoJsonIsRefusedInWords) {
  for (const char* text :
       {"", "{", "{\"a\" 1}", "[1,]", "nul", "{} {}", "\xff", "1e999", "[\"\xff\"]", "01", "NaN"}) {
    const std::string why = refusal(text);
    EXPECT_NE(why, "accepted") << text;
    EXPECT_EQ(why.find("json.exception"), std::string::npos) << why;
    EXPECT_LE(why.size(), 220u);
    EXPECT_TRUE(Json::parseOrNull(text).isNull());
  }
  EXPECT_THAT(refusal("{\n \"a\" 1}"),
              StartsWith("it is not JSON: parse error at line 2, column 6:"));
}

TEST(JsonText, ParseOrNullKeepsTheBounds) {
  EXPECT_EQ(Json::parseOrNull("[1]"), Json::array({1}));
  EXPECT_TRUE(Json::parseOrNull("[[1]]", 1).isNull());
  EXPECT_TRUE(Json::parseOrNull(R"({"a": 1, "a": 1})").isNull());
}

// Drops the lists, and records everything that it visits.
class Lists final : public JsonVisitor {
 public:
  void onObject(int depth) override { seen += "object " + std::to_string(depth) + ", "; }
  void onArray(int depth) override { seen += "array " + std::to_string(depth) + ", "; }
  void onKey(int depth, const std::string& key) override {
    seen += key + " " + std::to_string(depth) + ", ";
  }
  void onValue(int depth) override { seen += "value " + std::to_string(depth) + ", "; }
  bool keeps(int /*depth*/, const Json& value) override {
    if (!value.isArray()) return true;
    seen += "list of " + std::to_string(value.size()) + ", ";
    return false;
  }

  std::string seen;
};

TEST(JsonText, AVisitorSeesAllAndDropsWhatItDoesNotKeep) {
  Lists lists;
  const Json rest = Json::parse(R"({"a": [1, 2], "b": {"c": 3}, "d": []})", 8, &lists);
  EXPECT_EQ(rest.dump(), R"({"b":{"c":3}})");
  EXPECT_EQ(
      lists.seen,
      "object 0, a 1, array 1, value 2, value 2, list of 2, b 1, object 1, c 2, value 2, d 1, "
      "array 1, list of 0, ");
  EXPECT_TRUE(Json::parse("[1]", 8, &lists).isNull());
}

// A dropped value's key still makes a second one a duplicate.
TEST(JsonText, ADroppedKeyIsNotForgotten) {
  Lists lists;
  EXPECT_EQ(refusal(R"({"a": [], "a": []})", 8, &lists), "the key 'a' appears twice");
}

}  // namespace
}  // namespace dtf
