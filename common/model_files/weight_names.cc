#include "common/model_files/weight_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "common/base/error.h"
#include "common/base/text.h"

namespace dtf::model_files {

namespace {

[[noreturn]] void failNames(const std::string& why) {
  throw Error(ErrorCode::kUsage, printable(why));
}

bool endsPart(std::string_view name) {
  return name.ends_with('.') || name.ends_with('/');
}

// Returns the rest of a name behind `beginning`, whole parts of a name.
std::optional<std::string> behind(std::string_view name, std::string_view beginning) {
  if (!name.starts_with(beginning)) return std::nullopt;
  name.remove_prefix(beginning.size());
  if (endsPart(beginning)) return std::string(name);
  if (!name.starts_with('.') && !name.starts_with('/')) return std::nullopt;
  return std::string(name.substr(1));
}

// Returns read(name), or that of the name without "module.".
template <class Read>
std::optional<std::string> withOrWithoutModule(const std::string& name, const Read& read) {
  if (std::optional<std::string> found = read(name)) return found;
  const std::optional<std::string> inner = withoutModule(name);
  return inner ? read(*inner) : std::nullopt;
}

class Renaming {
 public:
  explicit Renaming(const NameRules& rules) : rules_(rules), used_(rules.renames.size()) {}

  // Returns the new name; nullopt: it hasn't the prefix.
  std::optional<std::string> of(const std::string& name) {
    std::optional<std::string> rest = name;
    if (!rules_.prefix.empty())
      rest = withOrWithoutModule(
          name, [this](const std::string& word) { return behind(word, rules_.prefix); });
    if (!rest || rest->empty()) return std::nullopt;
    return withOrWithoutModule(*rest, [this](const std::string& word) { return renamed(word); })
        .value_or(*rest);
  }

  // Returns a rule that no name has met; nullptr: there is none.
  const Rename* unused() const {
    const auto found = std::find(used_.begin(), used_.end(), false);
    return found == used_.end() ? nullptr
                                : &rules_.renames[static_cast<size_t>(found - used_.begin())];
  }

 private:
  std::optional<std::string> renamed(const std::string& name) {
    const Rename* longest = nullptr;
    for (const Rename& each : rules_.renames) {
      const bool meets = endsPart(each.from) ? name.starts_with(each.from) : name == each.from;
      if (meets && (longest == nullptr || each.from.size() > longest->from.size())) longest = &each;
    }
    if (longest == nullptr) return std::nullopt;
    used_[static_cast<size_t>(longest - rules_.renames.data())] = true;
    return longest->to + name.substr(longest->from.size());
  }

  const NameRules& rules_;
  std::vector<bool> used_;
};

// Returns "'a', 'b' and 7 more".
std::string namesOf(const FoundWeights& weights) {
  constexpr size_t kListed = 5;
  std::vector<std::string> names;
  for (const FoundTensor& tensor : weights.tensors) names.push_back("'" + tensor.name + "'");
  for (const SkippedTensor& tensor : weights.skipped) names.push_back("'" + tensor.name + "'");
  const size_t more = names.size() - std::min(names.size(), kListed);
  if (more == 0) return names.empty() ? "none" : join(names, ", ");
  names.resize(kListed);
  return fmt::format("{} and {} more", join(names, ", "), more);
}

// Moves the tensors without the prefix from `tensors` to `excluded`, and renames the others.
template <class Tensor>
void apply(std::vector<Tensor>& tensors, Renaming& renaming, const std::string& prefix,
           std::vector<SkippedTensor>& excluded) {
  std::vector<Tensor> kept;
  for (Tensor& tensor : tensors) {
    const std::optional<std::string> name = renaming.of(tensor.name);
    if (!name) {
      excluded.push_back({tensor.name, fmt::format("its name doesn't begin with {}", prefix)});
      continue;
    }
    if (*name != tensor.name) tensor.renamed = *name;
    kept.push_back(std::move(tensor));
  }
  tensors = std::move(kept);
}

void checkUnique(const FoundWeights& weights, const std::string& file) {
  std::map<std::string_view, std::string_view> names;
  for (const FoundTensor& tensor : weights.tensors) {
    const auto [at, is_new] = names.emplace(tensor.matchedName(), tensor.name);
    if (!is_new && tensor.name != at->second)
      failNames(fmt::format("{}: after --prefix and --rename both '{}' and '{}' are '{}'", file,
                            at->second, tensor.name, at->first));
  }
}

}  // namespace

Rename parseRename(std::string_view text) {
  const size_t at = text.rfind('=');
  if (at == std::string_view::npos || at == 0)
    failNames(
        fmt::format("--rename expects FROM=TO, got '{}': a tensor's name as "
                    "fc.weight=head.weight, or the beginning of names as encoder.=body.",
                    text));
  Rename rename{std::string(text.substr(0, at)), std::string(text.substr(at + 1))};
  const bool of_beginning = endsPart(rename.from);
  if (of_beginning ? !rename.to.empty() && !endsPart(rename.to)
                   : rename.to.empty() || endsPart(rename.to))
    failNames(fmt::format("--rename '{}': both sides are whole names, or both end in '.' or '/'{}",
                          text, of_beginning ? "; TO may be empty" : ""));
  return rename;
}

void applyNames(FoundWeights& weights, const NameRules& rules, const std::filesystem::path& file) {
  if (rules.prefix.empty() && rules.renames.empty()) return;
  const std::string names = namesOf(weights);
  Renaming renaming(rules);
  apply(weights.tensors, renaming, rules.prefix, weights.excluded);
  apply(weights.skipped, renaming, rules.prefix, weights.excluded);
  if (weights.tensors.empty() && weights.skipped.empty() && !weights.excluded.empty())
    failNames(fmt::format("{}: no tensor's name begins with --prefix '{}'; the names are {}",
                          file.string(), rules.prefix, names));
  if (const Rename* const unused = renaming.unused())
    failNames(fmt::format("{}: --rename {}={}: no tensor's name {} '{}'{}; the names are {}",
                          file.string(), unused->from, unused->to,
                          endsPart(unused->from) ? "begins with" : "is", unused->from,
                          rules.prefix.empty() ? "" : " behind the prefix", names));
  checkUnique(weights, file.string());
}

std::optional<std::string> withoutModule(std::string_view name) {
  constexpr std::string_view kModule = "module.";
  if (!name.starts_with(kModule) || name.size() == kModule.size()) return std::nullopt;
  return std::string(name.substr(kModule.size()));
}

}  // namespace dtf::model_files
