#pragma once

// JSON as a checkpoint may contain it: no key twice in an object, nesting with a bound. nlohmann's
// parser alone keeps the last of two equal keys, so two readers could see two different files.

#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace dtf::checkpoint {

// What both readers need while nlohmann's parser calls back. Value type.
class KeyGuard {
 public:
  void open() { keys_.emplace_back(); }
  void close() { keys_.pop_back(); }
  // Errors: kBadData when the innermost object has this key already.
  void key(const std::string& name);

 private:
  std::vector<std::set<std::string>> keys_;  // of the objects open now, outermost first
};

// Errors: kBadData: not JSON, a duplicate key, nested deeper than `depth_max`.
nlohmann::json parseStrictJson(std::string_view text, int depth_max);

// Turns nlohmann's message into one of ours.
std::string jsonErrorText(const std::exception& error);

}  // namespace dtf::checkpoint
