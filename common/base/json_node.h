#pragma once

// The content of a Json, for json.cc and json_text.cc alone.

#include <string>
#include <string_view>
#include <vector>

#include "common/base/json.h"

namespace dtf {

struct Json::Node {
  std::string text;
  std::vector<Json> items;
  std::vector<Member> members;
};

namespace json_node {

constexpr size_t kQuotedBytesMax = 200;  // bytes of a key quoted in a message

// Throws kBadData.
[[noreturn]] void fail(const std::string& why);
std::string inQuotes(std::string_view key);

}  // namespace json_node

}  // namespace dtf
