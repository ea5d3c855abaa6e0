#include "common/yaml/key_hints.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "common/yaml/report.h"

namespace dtf::yaml {

namespace {

// Words of other frameworks.
struct Alias {
  std::string_view word, key;
};
constexpr Alias kAliases[] = {
    {"sgd", "gradient_descent"},
    {"SGD", "gradient_descent"},
    {"lr", "learning_rate"},
    {"linear", "dense"},
    {"fc", "dense"},
    {"batchnorm", "batch_normalization"},
};

// Returns "adam" if `owner` is a table of "train.optimizer.NAME", and `map`, read with `table`,
// leads to the choice of adam. Empty: `map` leaves the choice at its default; nullopt: the choice
// is elsewhere, as in another file.
std::optional<std::string_view> chosenIn(const YamlNode* map, const Table& table,
                                         const Table& owner) {
  const std::string_view parent = parentOf(owner);
  const std::string begin = table.path.empty() ? "" : std::string(table.path) + ".";
  if (map == nullptr || !parent.starts_with(begin)) return std::nullopt;
  for (std::string_view rest = parent.substr(begin.size()); !rest.empty();) {
    if (!map->isMap()) return std::nullopt;
    const size_t dot = std::min(rest.find('.'), rest.size());
    map = map->find(rest.substr(0, dot));
    if (map == nullptr) return "";
    rest.remove_prefix(std::min(dot + 1, rest.size()));
  }
  if (map->isScalar()) return map->text;
  return map->isMap() && !map->children.empty() ? std::string_view(map->children[0].key) : "";
}

// Returns the table of the chosen sibling of `owner` that has the key `word`, or else `owner`.
const Table* chosenOwner(Tables tables, std::string_view word, std::string_view chosen,
                         const Table* owner) {
  for (const Table* table : tables)
    if (parentOf(*table) == parentOf(*owner) && table->find(word) != nullptr &&
        table->path.ends_with(fmt::format(".{}", chosen)))
      return table;
  return owner;
}

}  // namespace

std::string ownerHint(const MisplacedKey& at, std::string_view word) {
  const auto& [tables, not_this, map, is_flag] = at;
  const Table* owner = tableWith(tables, word, &not_this);
  if (owner == nullptr) return "";
  const std::optional<std::string_view> chosen = chosenIn(map, not_this, *owner);
  if (chosen && !chosen->empty()) owner = chosenOwner(tables, word, *chosen, owner);
  if (owner->path.empty()) return " - it belongs in the cluster file";
  if (is_flag && parentOf(*owner) == parentOf(not_this) && !parentOf(*owner).empty())
    return fmt::format(" - it is a key of {}", owner->path);
  if (is_flag)
    return fmt::format(" - write --set {}=VALUE",
                       chosen ? keyPath(*owner, word) : settingPath(tables, *owner, word));
  return fmt::format(" - it belongs in {}", owner->path);
}

std::string aliasHint(const MisplacedKey& at, std::string_view word) {
  const auto alias = std::ranges::find(kAliases, word, &Alias::word);
  if (alias == std::end(kAliases)) return "";
  const Key* key = at.table.find(alias->key);
  if (key != nullptr && key->available) return fmt::format(" - did you mean '{}'?", alias->key);
  const std::string hint = ownerHint(at, alias->key);
  constexpr std::string_view kIt = " - it ";
  return hint.starts_with(kIt)
             ? fmt::format(" - {} {}", inQuotes(alias->key), hint.substr(kIt.size()))
             : hint;
}

}  // namespace dtf::yaml
