#include "common/checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>

#include "common/base/error.h"
#include "tests/support/simulated_disk.h"

namespace dtf::checkpoint {
namespace {

// Returns why a header is rejected; empty if it isn't.
std::string refusal(const std::string& json, uint64_t data_bytes) {
  try {
    parseSafetensorsHeader(json, data_bytes);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadData);
    return error.message();
  }
  return {};
}

std::string tensor(const std::string& name, const std::string& shape, const std::string& offsets,
                   const std::string& dtype = "F32") {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape +
         ",\"data_offsets\":" + offsets + "}";
}

TEST(Safetensors, WhatIsWrittenIsReadBack) {
  const std::vector<SafetensorsEntry> entries = {{"a \"quoted\" \u00fc", "F32", {2, 3}, 0, 24},
                                                 {"scalar", "F64", {}, 24, 32},
                                                 {"none", "U8", {0, 5}, 32, 32},
                                                 {"z", "BF16", {1}, 32, 34}};
  const std::map<std::string, std::string> metadata = {{"k", "v"}};
  const std::string bytes = encodeSafetensorsHeader(entries, metadata);
  EXPECT_EQ(bytes.size() % 8, 0u) << "the data are aligned";
  uint64_t size = 0;
  std::memcpy(&size, bytes.data(), 8);
  EXPECT_EQ(size, bytes.size() - 8);
  const SafetensorsHeader header = parseSafetensorsHeader(bytes.substr(8), 34);
  EXPECT_EQ(header.entries, entries);
  EXPECT_EQ(header.metadata, metadata);
}

TEST(Safetensors, AFileWithoutTensorsIsOne) {
  const std::string bytes = encodeSafetensorsHeader({}, {});
  EXPECT_TRUE(parseSafetensorsHeader(bytes.substr(8), 0).entries.empty());
}

TEST(Safetensors, EntriesMayComeInAnyOrder) {
  const auto header = parseSafetensorsHeader(
      "{" + tensor("b", "[1]", "[4,8]") + "," + tensor("a", "[1]", "[0,4]") + "}  ", 8);
  ASSERT_EQ(header.entries.size(), 2u);
  EXPECT_EQ(header.entries[0].name, "a");
}

TEST(Safetensors, HostileHeadersAreRefusedWithTheReason) {
  const std::string good = tensor("a", "[2]", "[0,8]");
  ASSERT_EQ(refusal("{" + good + "}", 8), "");
  struct Case {
    std::string json;
    std::string reason;
  };
  const std::vector<Case> cases = {
      {"", "does not begin with '{'"},
      {" {}", "does not begin with '{'"},
      {"[]", "does not begin with '{'"},
      {"{", "not JSON"},
      {"{}x", "not JSON"},
      {"{" + good + "," + good + "}", "'a' appears twice"},
      {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
       "'dtype' appears twice"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", "must have dtype, shape"},
      {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"x\":1}}", "nothing else"},
      {"{" + tensor("a", "[2]", "[0,8]", "F33") + "}", "dtype is unknown"},
      {"{" + tensor("a", "[-2]", "[0,8]") + "}", "not a non-negative integer"},
      {"{" + tensor("a", "[2.0]", "[0,8]") + "}", "not a non-negative integer"},
      {"{" + tensor("a", "[\"2\"]", "[0,8]") + "}", "not a non-negative integer"},
      {"{" + tensor("a", "2", "[0,8]") + "}", "no list"},
      {"{" + tensor("a", "[2]", "[-8,0]") + "}", "not a non-negative integer"},
      {"{" + tensor("a", "[2]", "[8,0]") + "}", "don't hold"},
      {"{" + tensor("a", "[2]", "[0,7]") + "}", "don't hold"},
      {"{" + tensor("a", "[2]", "[0,8,8]") + "}", "not two numbers"},
      {"{" + tensor("a", "[2]", "[0,99999999999999999999]") + "}", "not a non-negative integer"},
      {"{" + tensor("a", "[4294967296,4294967296,4]", "[0,8]") + "}", "overflows"},
      {"{" + tensor("a", "[2]", "[4,12]") + "}", "after a hole"},
      {"{" + tensor("a", "[1]", "[0,4]") + "}", "the tensors end at 4"},
      {"{" + tensor("a", "[4]", "[0,16]") + "}", "there are only 8"},
      {"{" + tensor("a", "[2]", "[0,8]") + "," + tensor("b", "[1]", "[4,8]") + "}", "inside"},
      {"{" + tensor("a", "[1]", "[0,4]") + "," + tensor("b", "[1]", "[0,4]") + "}", "inside"},
      {"{\"a\":5}", "object of objects"},
      {"{\"a\":[]}", "a list, which"},
      {"{\"a\":{\"dtype\":{}}}", "an object, which"},
      {"{" + tensor("a", "[[2]]", "[0,8]") + "}", "a list, which"},
      {"{\"__metadata__\":{\"k\":1}}", "only hold texts"},
      {"{\"a\xff\":{}}", "not JSON"},
      {"{\"a\":" + std::string(100'000, '['), "a list, which"},
      {"{\"a\":{\"b\":" + std::string(100'000, '{'), "an object, which"},
  };
  for (const Case& each : cases)
    EXPECT_NE(refusal(each.json, 8).find(each.reason), std::string::npos)
        << each.json.substr(0, 200) << "\nexpected: " << each.reason
        << "\nsaid: " << refusal(each.json, 8);
}

// A shape of a million dimensions is rejected while it is read, not after.
TEST(Safetensors, ManyDimensionsAreRefused) {
  std::string dims = "1";
  for (int i = 1; i < 33; ++i) dims += ",1";
  EXPECT_NE(refusal("{" + tensor("a", "[" + dims + "]", "[0,4]") + "}", 4).find("too long"),
            std::string::npos);
  for (int i = 0; i < 100'000; ++i) dims += ",1";
  EXPECT_NE(refusal("{" + tensor("a", "[" + dims + "]", "[0,4]") + "}", 4).find("too many values"),
            std::string::npos);
}

// The header's size is checked against the file's before memory is allocated for it.
TEST(Safetensors, AFileThatLiesAboutItsHeaderIsRefused) {
  testing::SimulatedDisk disk;
  disk.create("/f");
  const auto refused = [&](const std::string& bytes) {
    disk.setContents("/f", bytes);
    try {
      readSafetensorsHeader(*disk.open("/f"), "/f");
    } catch (const Error& error) {
      return error.message();
    }
    return std::string("accepted");
  };
  EXPECT_EQ(refused("\x02\0\0\0\0\0\0\0{}"
                    "x"),
            "/f: it is shorter than the 8 bytes of a header size");
  const auto sized = [](uint64_t size, const std::string& rest) {
    return std::string(reinterpret_cast<const char*>(&size), 8) + rest;
  };
  EXPECT_EQ(refused(sized(2, "{}")), "accepted");
  for (const uint64_t size : {uint64_t{3}, uint64_t{100'000'001}, ~uint64_t{0}, uint64_t{1} << 63})
    EXPECT_NE(refused(sized(size, "{}")).find("its header would have " + std::to_string(size)),
              std::string::npos);
  EXPECT_NE(refused(sized(2, "{}x")).find("there are 1 bytes of data"), std::string::npos);
  EXPECT_NE(refused(sized(0, "")).find("does not begin"), std::string::npos);
}

}  // namespace
}  // namespace dtf::checkpoint
