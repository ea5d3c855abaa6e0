#include "common/cluster/schema.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>

namespace dtf::cluster {

using yaml::Key;
using yaml::Table;
using yaml::ValueType;

TEST(Schema, EveryAvailableKeyIsExplainedOnceAndIsConsistent) {
  for (const Table* table : allTables()) {
    std::set<std::string_view> names;
    for (const Key& key : table->keys) {
      EXPECT_TRUE(names.insert(key.name).second) << table->path << "." << key.name;
      if (!key.available) continue;
      EXPECT_FALSE(key.help.empty()) << table->path << "." << key.name;
      if (key.type == ValueType::kWhole) {
        EXPECT_LT(key.whole_min, key.whole_max) << key.name;
      }
      if (key.type == ValueType::kNumber) {
        EXPECT_LT(key.number.min, key.number.max) << key.name;
      }
      if (key.type == ValueType::kChoice) {
        EXPECT_FALSE(key.choices.empty()) << key.name;
      }
    }
  }
}

TEST(Schema, ReferenceListsEveryAvailableKeyWithinAHundredColumns) {
  const std::string reference = keyReference();
  for (const Table* table : allTables()) {
    for (const Key& key : table->keys) {
      const bool listed = reference.find("  " + std::string(key.name) + " ") != std::string::npos;
      EXPECT_TRUE(listed || !key.available) << key.name;
    }
  }
  std::istringstream lines(reference);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
}

}  // namespace dtf::cluster
