#include "common/model/layer_table.h"

#include <gtest/gtest.h>

#include <set>

namespace dtf::model {
namespace {

TEST(LayerTable, EveryLayerIsThereOnceAndExplained) {
  std::set<std::string_view> names;
  for (const LayerType& type : layerTypes()) {
    EXPECT_TRUE(names.insert(type.name).second) << type.name;
    EXPECT_FALSE(type.help.empty()) << type.name;
    ASSERT_NE(type.keys, nullptr) << type.name;
    EXPECT_NE(type.keys->find("name"), nullptr) << type.name << ": every layer can be named";
    EXPECT_EQ(&layerType(type.name), &type);
  }
  EXPECT_EQ(layerTable().names().size(), names.size());
}

TEST(LayerTable, EveryTableIsListedForTheReference) {
  const std::vector<const yaml::Table*> tables = modelTables();
  const std::set<const yaml::Table*> listed(tables.begin(), tables.end());
  EXPECT_EQ(listed.size(), tables.size()) << "each once";
  for (const LayerType& type : layerTypes()) EXPECT_TRUE(listed.contains(type.keys)) << type.name;
}

}  // namespace
}  // namespace dtf::model
