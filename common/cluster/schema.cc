#include "common/cluster/schema.h"

#include <fmt/format.h>

#include "common/cluster/optimizer_settings.h"
#include "common/model/former_names.h"

namespace dtf::cluster {

using yaml::Key;
using yaml::Table;

namespace {

// Returns the default of a setting; the help of other keys has it.
std::string defaultText(const Key& key) {
  if (key.required || !isSetting(key)) return "";
  OptimizerSpec spec;
  if (key.default_value) setSetting(spec, key, *key.default_value);
  return "; default " + (fits(key, settingValue(spec, key)) ? settingText(spec, key) : "none");
}

constexpr size_t kColumns = 100;
constexpr size_t kTypeColumn = 28;  // begin of the reference's second column

// Breaks `text` after a '|' or at a space into lines that fit the second column.
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
    out += table->path.empty() ? "CLUSTER.yaml; train: has the keys of TRAIN.yaml\n"
                               : fmt::format("\n{}\n", table->path);
    for (const Key& key : table->keys) {
      if (!key.available) continue;
      out += fmt::format("  {:<24}  {}\n", key.name,
                         wrapped(key.typeText() + (key.required ? ", required" : "")));
      out += fmt::format("  {:<26}  {}{}\n", "", key.help, defaultText(key));
      if (const std::string names = model::formerlyText(table->path, key.name); !names.empty())
        out += fmt::format("  {:<26}  {}\n", "", names);
    }
    if (table->also != nullptr) out += fmt::format("  and the keys of {}\n", table->also->path);
  }
  return out;
}

}  // namespace dtf::cluster
