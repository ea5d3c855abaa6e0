#pragma once

// A manifest to damage, and the reader's message about it.

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/checkpoint/manifest.h"
#include "tests/unit/checkpoint/checkpoint_fixture.h"

namespace dtf::checkpoint {

// Two variables in two shards: "w" of 10 elements is cut at 6.
inline Manifest goodManifest() {
  const std::vector<VariableInfo> variables = {{"w", Shape{5, 2}, {"Adagrad"}},
                                               {"b", Shape{2}, {}}};
  ShardFile first{"", 0, 1, {{"w", 0, 6, 64, 2}, {"w/Adagrad", 0, 6, 88, 3}}};
  ShardFile second{"", 0, 4, {{"w", 6, 4, 64, 5}, {"w/Adagrad", 6, 4, 80, 6}, {"b", 0, 2, 96, 7}}};
  first.file = shardFileName(0, 2);
  second.file = shardFileName(1, 2);
  first.bytes = 112;
  second.bytes = 104;
  return manifestFor(variables, 12, {first, second});
}

inline std::string refusal(const std::function<void()>& action, ErrorCode code) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    return error.message();
  }
  return {};
}

}  // namespace dtf::checkpoint
