#include "common/checkpoint/strict_json.h"

#include <nlohmann/json.hpp>

#include "common/base/error.h"

namespace dtf::checkpoint {

using nlohmann::json;

void KeyGuard::key(const std::string& name) {
  if (!keys_.back().insert(name).second)
    throw Error(ErrorCode::kBadData, "the key '" + name.substr(0, 200) + "' appears twice");
}

nlohmann::json parseStrictJson(std::string_view text, int depth_max) {
  using Event = json::parse_event_t;
  KeyGuard keys;
  const auto check = [&](int depth, Event event, json& value) {
    if ((event == Event::object_start || event == Event::array_start) && depth >= depth_max)
      throw Error(ErrorCode::kBadData,
                  "it is nested deeper than " + std::to_string(depth_max) + " levels");
    if (event == Event::object_start) keys.open();
    if (event == Event::object_end) keys.close();
    if (event == Event::key) keys.key(value.get_ref<const std::string&>());
    return true;
  };
  try {
    return json::parse(text, check);
  } catch (const json::exception& error) {
    throw Error(ErrorCode::kBadData, jsonErrorText(error));
  }
}

std::string jsonErrorText(const std::exception& error) {
  std::string text = error.what();
  if (const size_t end = text.find("] "); end != std::string::npos) text.erase(0, end + 2);
  return text.substr(0, 200);
}

}  // namespace dtf::checkpoint
