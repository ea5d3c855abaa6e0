#include "launcher/run_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/file.h"
#include "common/base/text.h"
#include "common/yaml/report.h"
#include "common/yaml/yaml_tree.h"

namespace dtf::launcher {

namespace fs = std::filesystem;

namespace {

using yaml::YamlNode;

std::string plainText(const YamlNode& node) {
  if (node.isNull()) return "null";
  if (node.isScalar()) return node.text;
  return node.isMap() ? "{}" : "[]";
}

bool isPlain(const YamlNode& node) {
  return !node.isMap() && std::ranges::all_of(node.children, [](const YamlNode& each) {
    return each.isScalar() || each.isNull();
  });
}

// "127.0.0.1:41049" -> "127.0.0.1"; an address of IPv6 has its colons within brackets.
std::string withoutPort(const std::string& address) {
  const size_t colon = address.rfind(':');
  const bool has_port = colon != std::string::npos && colon + 1 < address.size() &&
                        address.find_first_not_of("0123456789", colon + 1) == std::string::npos;
  return has_port ? address.substr(0, colon) : address;
}

class Flattener {
 public:
  explicit Flattener(RunSettings& settings) : settings_(settings) {}

  void add(const std::string& path, const YamlNode& node) {
    if (path == "job" || path == "run_dir") return;
    if (node.children.empty()) {
      settings_[path] = valueOf(path, node);
    } else if (node.isMap()) {
      for (const YamlNode& child : node.children)
        add(path.empty() ? child.key : path + "." + child.key, child);
    } else if (isPlain(node)) {
      std::vector<std::string> values;
      for (const YamlNode& child : node.children) values.push_back(valueOf(path, child));
      settings_[path] = "[" + join(values, ", ") + "]";
    } else {
      for (size_t i = 0; i < node.children.size(); ++i)
        add(fmt::format("{}[{}]", path, i), node.children[i]);
    }
  }

 private:
  static std::string valueOf(const std::string& path, const YamlNode& node) {
    const std::string text = plainText(node);
    return path.starts_with("cluster.") ? withoutPort(text) : text;
  }

  RunSettings& settings_;
};

// The chief's comments on the examples: "# data.train: content: 0a1a52c7446eaee8". A comment on a
// setting that the file has as a key is passed over.
void addComments(const std::string& text, RunSettings& settings) {
  for (const std::string& line : split(text, '\n')) {
    if (!line.starts_with("# data.")) continue;
    const size_t colon = line.rfind(": ");
    if (colon == std::string::npos) continue;
    std::string key = line.substr(2, colon - 2);
    std::erase(key, ':');
    if (!settings.contains("train." + key)) settings[key] = line.substr(colon + 2);
  }
}

}  // namespace

std::optional<RunSettings> settingsIn(const std::string& text) {
  yaml::Report report;
  const std::optional<YamlNode> root =
      yaml::parseYaml(text, report.addFile("job.yaml", text), report);
  if (!root || !report.empty() || !root->isMap()) return std::nullopt;
  RunSettings settings;
  Flattener(settings).add("", *root);
  addComments(text, settings);
  return settings;
}

std::optional<RunSettings> readSettings(const fs::path& folder) {
  try {
    return settingsIn(readFile(folder / "job.yaml", yaml::kYamlBytesMax));
  } catch (const Error&) {
    return std::nullopt;
  }
}

std::vector<SettingDifference> differencesOf(std::span<const RunSettings> runs) {
  DTF_CHECK(runs.size() >= 2);
  std::set<std::string> keys;
  for (const RunSettings& run : runs)
    for (const auto& [key, value] : run) keys.insert(key);
  std::vector<SettingDifference> differences;
  for (const std::string& key : keys) {
    SettingDifference each{key, {}};
    for (const RunSettings& run : runs) {
      const auto found = run.find(key);
      each.values.push_back(found == run.end() ? std::nullopt : std::optional(found->second));
    }
    if (std::ranges::any_of(each.values,
                            [&](const auto& value) { return value != each.values.front(); }))
      differences.push_back(std::move(each));
  }
  return differences;
}

}  // namespace dtf::launcher
