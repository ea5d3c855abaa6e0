// Json read from text and written: the only file of dtf that includes nlohmann-json.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "common/base/error.h"
#include "common/base/json.h"
#include "common/base/json_node.h"

namespace dtf {

namespace {

// Returns nlohmann's message without the name of its exception.
std::string messageOf(const std::exception& error) {
  std::string text = error.what();
  if (const size_t end = text.find("] "); end != std::string::npos) text.erase(0, end + 2);
  return text.substr(0, json_node::kQuotedBytesMax);
}

}  // namespace

// ---- reading: callbacks of nlohmann's parser

class Json::Builder {
 public:
  Builder(int depth_max, JsonVisitor* visitor) : depth_max_(depth_max), visitor_(visitor) {}

  Json take() { return std::move(root_); }

  bool null() { return value(Json()); }
  bool boolean(bool truth) { return value(truth); }
  bool number_integer(int64_t number) { return value(number); }
  bool number_unsigned(uint64_t number) { return value(number); }
  bool number_float(double number, const std::string& /*digits*/) { return value(number); }
  bool string(std::string& text) { return value(std::move(text)); }
  // not in texts, only in binary formats
  bool binary(std::vector<uint8_t>& /*bytes*/) { return false; }

  bool start_object(size_t /*size*/) { return start(Json::object()); }
  bool end_object() { return finish(); }
  bool start_array(size_t /*size*/) { return start(Json::array()); }
  bool end_array() { return finish(); }

  bool key(std::string& key) {
    if (!open_.back().keys.insert(key).second)
      json_node::fail("the key " + json_node::inQuotes(key) + " appears twice");
    if (visitor_ != nullptr) visitor_->onKey(depth(), key);
    key_ = std::move(key);
    return true;
  }

  bool parse_error(size_t /*at*/, const std::string& /*token*/, const std::exception& error) {
    json_node::fail("it is not JSON: " + messageOf(error));
  }

 private:
  struct Open {
    Json* container = nullptr;  // does not move while it is open
    std::set<std::string> keys;
  };

  int depth() const { return static_cast<int>(open_.size()); }

  Json* add(Json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Node& node = *open_.back().container->node_;
    if (open_.back().container->isArray()) return &node.items.emplace_back(std::move(value));
    node.members.push_back({std::move(key_), std::move(value)});
    return &node.members.back().value;
  }

  bool value(Json scalar) {
    if (visitor_ != nullptr) visitor_->onValue(depth());
    add(std::move(scalar));
    return true;
  }

  bool start(Json container) {
    if (depth() >= depth_max_)
      json_node::fail("it is nested deeper than " + std::to_string(depth_max_) + " levels");
    if (visitor_ != nullptr && container.isObject()) visitor_->onObject(depth());
    if (visitor_ != nullptr && container.isArray()) visitor_->onArray(depth());
    open_.push_back({add(std::move(container)), {}});
    return true;
  }

  bool finish() {
    const Json& whole = *open_.back().container;
    open_.pop_back();
    if (visitor_ == nullptr || visitor_->keeps(depth(), whole)) return true;
    if (open_.empty()) {
      root_ = Json();
      return true;
    }
    Json& parent = *open_.back().container;
    parent.isArray() ? parent.node_->items.pop_back() : parent.node_->members.pop_back();
    return true;
  }

  const int depth_max_;
  JsonVisitor* const visitor_;
  Json root_;
  std::vector<Open> open_;  // outermost first
  std::string key_;         // the key of the next value
};

Json Json::parse(std::string_view text, int depth_max, JsonVisitor* visitor) {
  Builder builder(depth_max, visitor);
  if (!nlohmann::json::sax_parse(text, &builder)) json_node::fail("it is not JSON");
  return builder.take();
}

Json Json::parseOrNull(std::string_view text, int depth_max) {
  try {
    return parse(text, depth_max);
  } catch (const Error&) {
    return {};
  }
}

// ---- writing

class Json::Writer {
 public:
  using Invalid = nlohmann::json::error_handler_t;

  Writer(int indent, bool ascii, Invalid invalid)
      : indent_(indent), ascii_(ascii), invalid_(invalid) {}

  std::string take() { return std::move(out_); }

  void write(const Json& value, size_t level) {
    switch (value.type_) {
      case Type::kNull:
        out_ += "null";
        return;
      case Type::kBool:
        out_ += value.bits_ != 0 ? "true" : "false";
        return;
      case Type::kNegative:
        out_ += std::to_string(static_cast<int64_t>(value.bits_));
        return;
      case Type::kUnsigned:
        out_ += std::to_string(value.bits_);
        return;
      case Type::kDouble:
        out_ += nlohmann::json(value.number()).dump();
        return;
      case Type::kString:
        writeText(value.node_->text);
        return;
      case Type::kArray:
        return writeArray(value.node_->items, level);
      case Type::kObject:
        return writeObject(value.node_->members, level);
    }
  }

 private:
  static bool isPlain(unsigned char byte) {
    return byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
  }

  void writeText(const std::string& text) {
    if (std::all_of(text.begin(), text.end(), isPlain))
      out_ += '"' + text + '"';
    else
      out_ += nlohmann::json(text).dump(-1, ' ', ascii_, invalid_);
  }

  void writeArray(const std::vector<Json>& items, size_t level) {
    out_ += '[';
    for (size_t i = 0; i < items.size(); ++i) {
      beginItem(i, level);
      write(items[i], level + 1);
    }
    if (!items.empty()) newLine(level);
    out_ += ']';
  }

  void writeObject(const std::vector<Member>& members, size_t level) {
    out_ += '{';
    for (size_t i = 0; i < members.size(); ++i) {
      beginItem(i, level);
      writeText(members[i].key);
      out_ += indent_ < 0 ? ":" : ": ";
      write(members[i].value, level + 1);
    }
    if (!members.empty()) newLine(level);
    out_ += '}';
  }

  void beginItem(size_t index, size_t level) {
    if (index > 0) out_ += ',';
    newLine(level + 1);
  }

  void newLine(size_t level) {
    if (indent_ < 0) return;
    out_ += '\n';
    out_.append(level * static_cast<size_t>(indent_), ' ');
  }

  const int indent_;
  const bool ascii_;
  const Invalid invalid_;
  std::string out_;
};

std::string Json::dump(int indent) const {
  Writer writer(indent, false, Writer::Invalid::replace);
  writer.write(*this, 0);
  return writer.take();
}

std::string Json::dumpAscii() const {
  Writer writer(-1, true, Writer::Invalid::replace);
  writer.write(*this, 0);
  return writer.take();
}

std::string Json::dumpStrict(int indent) const {
  Writer writer(indent, false, Writer::Invalid::strict);
  try {
    writer.write(*this, 0);
  } catch (const nlohmann::json::exception& error) {
    json_node::fail(messageOf(error));
  }
  return writer.take();
}

}  // namespace dtf
