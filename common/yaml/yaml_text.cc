#include "common/yaml/yaml_text.h"

#include "common/base/json.h"

namespace dtf::yaml {

namespace {

constexpr size_t kLineMax = 80;
constexpr size_t kIndent = 2;

bool isPlain(const std::string& text) {
  constexpr std::string_view kSafe =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./+-";
  return !text.empty() && text[0] != '-' && text.find_first_not_of(kSafe) == std::string::npos;
}

// A number may begin with a minus.
bool isNegative(const std::string& text) {
  return text.size() > 1 && text[0] == '-' &&
         text.find_first_not_of("0123456789.eE+-") == std::string::npos;
}

// A text between quotes is never a number, so the quotes stay. JSON's are YAML's.
std::string scalarText(const YamlNode& node) {
  if (node.isNull()) return "null";
  const bool is_bare = !node.quoted && (isPlain(node.text) || isNegative(node.text));
  return is_bare ? node.text : Json(node.text).dump();
}

std::string keyText(const YamlNode& node) {
  return (isPlain(node.key) ? node.key : Json(node.key).dump()) + ":";
}

// Empty: it is too long, or holds more than words.
std::string inBrackets(const YamlNode& node) {
  const bool is_map = node.isMap();
  std::string text;
  for (const YamlNode& child : node.children) {
    if (child.isMap() || child.isSequence()) return "";
    if (!text.empty()) text += ", ";
    if (is_map) text += keyText(child) + " ";
    text += scalarText(child);
  }
  if (text.size() > kLineMax) return "";
  return is_map ? "{" + text + "}" : "[" + text + "]";
}

void write(const YamlNode& node, size_t indent, std::string& text);

// Behind a key or a dash.
void writeValue(const YamlNode& node, size_t indent, std::string& text) {
  if (node.isNull() || node.isScalar()) {
    text += " " + scalarText(node) + "\n";
  } else if (const std::string one_line = inBrackets(node); !one_line.empty()) {
    text += " " + one_line + "\n";
  } else {
    text += "\n";
    write(node, indent + kIndent, text);
  }
}

void write(const YamlNode& node, size_t indent, std::string& text) {
  for (const YamlNode& child : node.children) {
    text += std::string(indent, ' ') + (node.isMap() ? keyText(child) : "-");
    writeValue(child, indent, text);
  }
}

}  // namespace

std::string yamlText(const YamlNode& root) {
  std::string text;
  if (root.isMap() || root.isSequence())
    write(root, 0, text);
  else
    text = scalarText(root) + "\n";
  return text;
}

}  // namespace dtf::yaml
