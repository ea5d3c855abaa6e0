#include "common/cluster/schema.h"

#include <fmt/format.h>

#include "common/cluster/optimizer_settings.h"
#include "common/model/former_names.h"

namespace dtf::cluster {

using yaml::Key;
using yaml::Table;

namespace {

// Of a setting; other keys have it in their help.
std::string defaultText(const Key& key) {
  if (key.required || !isSetting(key)) return "";
  OptimizerSpec spec;
  if (key.default_value) setSetting(spec, key, *key.default_value);
  return "; default " + (fits(key, settingValue(spec, key)) ? settingText(spec, key) : "none");
}

constexpr size_t kColumns = 100;
constexpr size_t kTypeColumn = 28;  // of the second column of the reference

// `text` in lines that fit the second column, broken after a '|' or at a space.
std::string wrapped(std::string_view text) {
  constexpr size_t kWidth = kColumns - kTypeColumn;
  std::string lines;
  while (text.size() > kWidth) {
    const size_t end = text.find_last_of("| ", kWidth - 1);
    if (end == std::string_view::npos) break;
    lines += std::string(text.substr(0, end + (text[end] == '|' ? 1 : 0))) + "\n" +
             std::string(kTypeColumn, ' ');
    text.remove_prefix(end + 1);
  }
  return lines + std::string(text);
}

}  // namespace

std::string keyReference() {
  std::string out;
  for (const Table* table : allTables()) {
    out += table->path.empty() ? "CLUSTER.yaml; the keys of train: are those of TRAIN.yaml\n"
                               : fmt::format("\n{}\n", table->path);
    for (const Key& key : table->keys) {
      if (!key.available) continue;
      out += fmt::format("  {:<24}  {}\n", key.name,
                         wrapped(key.typeText() + (key.required ? ", required" : "")));
      out += fmt::format("  {:<26}  {}{}\n", "", key.help, defaultText(key));
      if (const std::string names = model::formerlyText(table->path, key.name); !names.empty())
        out += fmt::format("  {:<26}  {}\n", "", names);
    }
    if (table->also != nullptr) out += fmt::format("  and those of {}\n", table->also->path);
  }
  return out;
}

}  // namespace dtf::cluster
