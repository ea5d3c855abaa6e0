#include "launcher/init/yaml_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <system_error>

#include "common/base/check.h"
#include "common/data/data_signature.h"

namespace dtf::launcher {

namespace {

constexpr size_t kYamlColumnsMax = 98;  // behind a list comes "]" or ","
constexpr size_t kScalarBytesMax = 4096;

bool isControlCharacter(unsigned char c) {
  return c < 0x20 || c == 0x7F;
}

// Letters, digits and some signs, which no rule of YAML gives a meaning.
bool isPlainWord(std::string_view text) {
  constexpr std::array<std::string_view, 12> kReserved = {
      "true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf", "none"};
  if (text.empty() || text.back() == ' ' || std::isalpha(static_cast<unsigned char>(text[0])) == 0)
    return false;
  const bool plain = std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.' || c == '/' || c == ' ';
  });
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return plain && std::find(kReserved.begin(), kReserved.end(), lower) == kReserved.end();
}

}  // namespace

bool isWritable(std::string_view text) {
  return !text.empty() && text.size() <= kScalarBytesMax &&
         std::none_of(text.begin(), text.end(), isControlCharacter) && data::asUtf8(text) == text;
}

std::string yamlText(std::string_view text) {
  DTF_CHECK(!text.empty());
  if (isPlainWord(text)) return std::string(text);
  std::string quoted = "\"";
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c == '"' || c == '\\')
      quoted += fmt::format("\\{}", text[i]);
    else if (isControlCharacter(c))
      quoted += fmt::format("\\x{:02x}", c);
    // U+0080 to U+009F are control characters, too.
    else if (c == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0)
      quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[++i]));
    else
      quoted += text[i];
  }
  return quoted + "\"";
}

std::string yamlNumber(double number) {
  const auto single = static_cast<float>(number);
  DTF_CHECK(std::isfinite(single));
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), single);
  DTF_CHECK(error == std::errc());
  return {text.data(), end};
}

std::string yamlList(std::string_view key, const std::vector<std::string>& items, size_t indent) {
  DTF_CHECK(!key.empty());
  const std::string margin(indent, ' ');
  std::string text, line = fmt::format("{}{}: [", margin, key);
  for (size_t i = 0; i < items.size(); ++i) {
    const bool fits = line.size() + items[i].size() <= kYamlColumnsMax;
    if (!fits && !line.ends_with('[') && line.find_first_not_of(' ') != line.npos) {
      while (line.ends_with(' ')) line.pop_back();
      text += line + "\n";
      line = margin + "  ";
    }
    line += items[i] + (i + 1 < items.size() ? ", " : "");
  }
  return text + line + "]";
}

std::string yamlWords(std::string_view key, const std::vector<std::string>& words, size_t indent) {
  std::vector<std::string> items;
  items.reserve(words.size());
  for (const std::string& word : words) items.push_back(yamlText(word));
  return yamlList(key, items, indent);
}

}  // namespace dtf::launcher
