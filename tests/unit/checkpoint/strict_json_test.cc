#include "common/checkpoint/strict_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "common/base/error.h"

namespace dtf::checkpoint {
namespace {

std::string refusal(const std::string& text, int depth_max = 4) {
  try {
    parseStrictJson(text, depth_max);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadData);
    return error.message();
  }
  return "accepted";
}

TEST(StrictJson, ReadsWhatNlohmannsParserReads) {
  EXPECT_EQ(parseStrictJson(R"({"a": [1, {"b": null}]})", 4)["a"][0], 1);
}

TEST(StrictJson, AKeyTwiceInOneObjectIsRefused) {
  EXPECT_EQ(refusal(R"({"a": 1, "a": 1})"), "the key 'a' appears twice");
  EXPECT_EQ(refusal(R"([{"x": {"a": 1, "b": 2, "a": 3}}])"), "the key 'a' appears twice");
}

TEST(StrictJson, TheSameKeyInDifferentObjectsIsNoDuplicate) {
  EXPECT_EQ(refusal(R"({"a": {"a": 1}, "b": [{"a": 1}, {"a": 2}]})"), "accepted");
}

TEST(StrictJson, ALongKeyIsCutInTheMessage) {
  const std::string key(100'000, 'k');
  EXPECT_LT(refusal("{\"" + key + "\": 1, \"" + key + "\": 2}").size(), 300u);
}

TEST(StrictJson, NestingHasABound) {
  EXPECT_EQ(refusal("[[[[1]]]]", 4), "accepted");
  EXPECT_EQ(refusal("[[[[[1]]]]]", 4), "it is nested deeper than 4 levels");
  EXPECT_EQ(refusal(std::string(100'000, '[')), "it is nested deeper than 4 levels");
}

TEST(StrictJson, WhatIsNoJsonIsRefusedInWords) {
  for (const char* text : {"", "{", "{\"a\" 1}", "[1,]", "nul", "{} {}", "\xff"}) {
    const std::string why = refusal(text);
    EXPECT_NE(why, "accepted") << text;
    EXPECT_EQ(why.find("json.exception"), std::string::npos) << why;
    EXPECT_LE(why.size(), 200u);
  }
}

}  // namespace
}  // namespace dtf::checkpoint
