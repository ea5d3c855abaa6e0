#include "common/cluster/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/program_options.hpp>
#include <charconv>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/cluster/schema.h"
#include "common/yaml/expand_path.h"
#include "common/yaml/report.h"

namespace dtf::cluster {

using yaml::expandPath;
using yaml::inQuotes;
using yaml::settingPath;
using yaml::Table;
using yaml::tableWith;

namespace po = boost::program_options;

namespace {

constexpr OptionDef kCommon[] = {
    {"set", "KEY=VALUE", "change one key of the file: train.steps=50, cluster.ps.0=host:2222",
     true},
    {"run-dir", "DIR", "where the job writes, instead of the file's run_dir"},
    {"keys", "DIR", "TLS with the keys of this folder (dtf-launch keys): --set keys=DIR"},
    {"insecure", "", "listen beyond loopback without keys: --set insecure=true"},
    {"log-level", "LEVEL", "debug, info (default), warning or error"},
    {"help", "", "this text"},
    {"help-config", "", "all keys of CLUSTER.yaml and TRAIN.yaml"},
    {"version", "", "the version"},
};

constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kLetters = {
    {{"-h", "--help"}, {"-?", "--help"}, {"-V", "--version"}}};

// Returns argv without the program; '_' in names of options becomes '-', and short options long
// ones.
std::vector<std::string> normalise(int argc, const char* const* argv) {
  std::vector<std::string> words;
  bool options = true;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (word == "--") options = false;
    if (options && word.starts_with("--"))
      std::replace(word.begin(), word.begin() + std::min(word.find('='), word.size()), '_', '-');
    for (const auto& [letter, name] : kLetters)
      if (options && word == letter) word = name;
    words.push_back(std::move(word));
  }
  return words;
}

std::string withoutDashes(std::string_view option) {
  return std::string(option.substr(std::min(option.find_first_not_of('-'), option.size())));
}

// Suggests --set for an option of other trainers, as "--steps 500", that is a key of the file.
std::string settingHint(std::string option) {
  std::replace(option.begin(), option.end(), '-', '_');
  const Table* table = tableWith(allTables(), option);
  if (table == nullptr) return "";
  return fmt::format(": to change this key of the file, give --set {}=VALUE",
                     settingPath(allTables(), *table, option));
}

constexpr size_t kHelpColumns = 100;
constexpr size_t kHelpIndent = 28;  // of an option's description

// Removes the first words of `text` that fit into `width`, at least one, and returns them.
std::string_view takeLine(std::string_view& text, size_t width) {
  size_t end = text.size();
  if (end > width) {
    end = text.rfind(' ', width);
    if (end == std::string_view::npos) end = std::min(text.find(' '), text.size());
  }
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

}  // namespace

std::span<const OptionDef> commonOptions() {
  return kCommon;
}

std::string optionHelp(std::span<const OptionDef> options) {
  std::string out;
  for (const OptionDef& option : options) {
    const std::string words = option.argument.empty()
                                  ? fmt::format("--{}", option.name)
                                  : fmt::format("--{} {}", option.name, option.argument);
    std::string_view label = words, rest = option.help;
    do {
      out += fmt::format("  {:<24}  {}\n", label, takeLine(rest, kHelpColumns - kHelpIndent));
      label = {};
    } while (!rest.empty());
  }
  return out;
}

CommandLine::CommandLine(std::string_view program, std::span<const OptionDef> options,
                         size_t positionals_max, int argc, const char* const* argv)
    : program_(program) {
  DTF_CHECK(!program_.empty() && argc >= 0);
  po::options_description description;
  std::vector<std::string_view> names;
  for (const OptionDef& option : options) {
    const std::string name(option.name);
    names.push_back(option.name);
    if (option.argument.empty()) {
      description.add_options()(name.c_str(), "");
    } else {
      description.add_options()(name.c_str(), po::value<std::string>(), "");
    }
  }
  try {
    po::command_line_parser parser(normalise(argc, argv));
    const po::parsed_options parsed =
        parser.options(description)
            .style(po::command_line_style::unix_style & ~po::command_line_style::allow_guessing)
            .run();
    for (const po::option& option : parsed.options) {
      if (option.string_key.empty()) {
        positionals_.insert(positionals_.end(), option.value.begin(), option.value.end());
        continue;
      }
      const auto def = std::find_if(
          options.begin(), options.end(),
          [&](const OptionDef& candidate) { return candidate.name == option.string_key; });
      DTF_CHECK_MSG(def != options.end(), option.string_key);
      if (has(option.string_key) && !def->argument.empty() && !def->repeatable)
        fail(fmt::format("--{} is given twice", option.string_key));
      std::vector<std::string>& values = values_[option.string_key];
      values.insert(values.end(), option.value.begin(), option.value.end());
    }
  } catch (const po::unknown_option& e) {
    const std::string option = e.get_option_name().substr(0, e.get_option_name().find('='));
    const std::string word = withoutDashes(option);
    const std::string near = nearestWord(word, names);
    fail("unknown option " + inQuotes(option) +
         (near.empty() ? settingHint(word) : " - did you mean '--" + near + "'?"));
  } catch (const po::error& e) {
    fail(e.what());
  }
  if (positionals_.size() > positionals_max)
    fail("unexpected argument " + inQuotes(positionals_[positionals_max]));
}

std::optional<std::string> CommandLine::value(std::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end() || found->second.empty()) return std::nullopt;
  return found->second.front();
}

std::vector<std::string> CommandLine::values(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::vector<std::string>() : found->second;
}

std::optional<uint32_t> CommandLine::index(std::string_view name) const {
  const std::optional<std::string> text = value(name);
  if (!text) return std::nullopt;
  uint32_t number = 0;
  const char* end = text->data() + text->size();
  const auto [stop, error] = std::from_chars(text->data(), end, number);
  if (error != std::errc() || stop != end)
    fail(fmt::format("--{} expects a whole number from 0 on, got {}", name, inQuotes(*text)));
  return number;
}

std::vector<std::string> CommandLine::overrides() const {
  std::vector<std::string> result = values("set");
  if (const std::optional<std::string> keys = value("keys"))
    result.push_back("keys=" + std::filesystem::absolute(folder("keys", *keys)).string());
  if (has("insecure")) result.emplace_back("insecure=true");
  return result;
}

std::string CommandLine::folder(std::string_view name, std::string path) const {
  if (path.empty()) fail(fmt::format("--{} expects a folder", name));
  const std::string wrong = expandPath(path);
  if (!wrong.empty()) fail(fmt::format("--{}: {}", name, wrong));
  return path;
}

log::Level CommandLine::logLevel() const {
  log::Level level = log::Level::kInfo;
  const std::optional<std::string> text = value("log-level");
  if (text && !log::parseLevel(*text, level))
    fail("--log-level expects debug, info, warning or error, got " + inQuotes(*text));
  return level;
}

std::optional<std::string> CommandLine::answer(const std::string& help) const {
  if (has("help")) return help;
  if (has("help-config")) return keyReference();
  if (has("version")) return program_ + " " DTF_VERSION "\n";
  return std::nullopt;
}

void CommandLine::fail(const std::string& message) const {
  throw Error(ErrorCode::kUsage,
              message + (message.ends_with('?') ? " " : "; ") + "try '" + program_ + " --help'");
}

}  // namespace dtf::cluster
