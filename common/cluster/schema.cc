#include "common/cluster/schema.h"

#include <fmt/format.h>

#include "common/cluster/optimizer_settings.h"

namespace dtf::cluster {

using yaml::Key;
using yaml::keyPath;
using yaml::keyWithoutSpace;
using yaml::nearestKey;
using yaml::suggestion;
using yaml::Table;
using yaml::tableWith;
using yaml::ValueType;

namespace {

// Of a setting; other keys have it in their help.
std::string defaultText(const Key& key) {
  if (key.required || !isSetting(key)) return "";
  OptimizerSpec spec;
  if (key.default_value) setSetting(spec, key, *key.default_value);
  return "; default " + (fits(key, settingValue(spec, key)) ? settingText(spec, key) : "none");
}

}  // namespace

std::string keyReference() {
  std::string out;
  for (const Table* table : allTables()) {
    out += table->path.empty() ? "CLUSTER.yaml; the keys of train: are those of TRAIN.yaml\n"
                               : fmt::format("\n{}\n", table->path);
    for (const Key& key : table->keys) {
      if (!key.available) continue;
      out += fmt::format("  {:<25} {}{}\n", key.name, key.typeText(),
                         key.required ? ", required" : "");
      out += fmt::format("  {:<26}  {}{}\n", "", key.help, defaultText(key));
    }
    if (table->also != nullptr) out += fmt::format("  and those of {}\n", table->also->path);
  }
  return out;
}

}  // namespace dtf::cluster
