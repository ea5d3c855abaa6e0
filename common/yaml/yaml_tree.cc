#include "common/yaml/yaml_tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/file.h"
#include "common/yaml/sent_files.h"
#include "common/yaml/yaml_syntax.h"

namespace dtf::yaml {

namespace {

// Ends the parse of one source; never leaves this file.
struct Stop {
  Place place;
  std::string message;
  bool may_be_open_bracket = false;  // see SyntaxMistake
};

int depthOf(const YamlNode& node) {
  int depth = 0;
  for (const YamlNode& child : node.children) depth = std::max(depth, depthOf(child));
  return depth + 1;
}

size_t countNodes(const YamlNode& node) {
  size_t count = 1;
  for (const YamlNode& child : node.children) count += countNodes(child);
  return count;
}

size_t textBytesOf(const YamlNode& node) {
  size_t bytes = node.text.size() + node.key.size();
  for (const YamlNode& child : node.children) bytes += textBytesOf(child);
  return bytes;
}

// YAML 1.1's merge key: its value is a map, or a list of maps. The surrounding map takes their
// keys, unless it has them. Of several maps the first that has a key gives it.
constexpr std::string_view kMergeKey = "<<";

// Adds the keys of `from` that `map` lacks.
void mergeInto(YamlNode& map, const YamlNode& from) {
  if (!from.isMap())
    throw Stop{from.where(), "'<<' takes the keys of a map: write <<: *name, or <<: [*one, *two]"};
  for (const YamlNode& child : from.children)
    if (map.find(child.key) == nullptr) map.children.push_back(child);
}

void merge(YamlNode& map) {
  const auto found = std::ranges::find(map.children, kMergeKey, &YamlNode::key);
  if (!map.isMap() || found == map.children.end()) return;
  const YamlNode from = std::move(*found);
  map.children.erase(found);
  if (!from.isSequence()) return mergeInto(map, from);
  for (const YamlNode& each : from.children) mergeInto(map, each);
}

// Builds the tree from yaml-cpp's events, with a stack of open collections; a map's frame
// alternates key and value.
class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(int source, Report& report) : source_(source), report_(report) {}
  YamlNode takeRoot() {
    DTF_CHECK(stack_.empty());
    return std::move(root_);
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ > 0) throw Stop{placeOf(mark), "a second document: a file holds one"};
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(makeNode(YamlNode::Kind::kNull, mark), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) throw Stop{placeOf(mark), "an alias inside of what it stands for"};
    const size_t depth = stack_.size() + depthOf(found->second);
    if (depth > kYamlDepthMax) stopTooDeep(placeOf(mark));
    count(countNodes(found->second), placeOf(mark));
    countText(textBytesOf(found->second), placeOf(mark));
    YamlNode copy = found->second;
    if (copy.isScalar() || copy.isNull()) copy.place = placeOf(mark);
    add(std::move(copy), 0);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuseTag(tag, mark);
    YamlNode node = makeNode(YamlNode::Kind::kScalar, mark);
    node.text = value;
    node.quoted = tag == "!";
    add(std::move(node), anchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::kSequence, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::kMap, mark, tag, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Frame {
    YamlNode node;
    YAML::anchor_t anchor = 0;
    bool has_key = false;
    std::string key;
    Place key_place;
    std::map<std::string, int> key_lines;
  };

  Place placeOf(const YAML::Mark& mark) const { return {source_, mark.line + 1, mark.column + 1}; }

  [[noreturn]] static void stopTooDeep(const Place& place) {
    throw Stop{place, "nested deeper than " + std::to_string(kYamlDepthMax) + " levels"};
  }

  void refuseTag(const std::string& tag, const YAML::Mark& mark) const {
    if (!tag.empty() && tag != "?" && tag != "!")
      throw Stop{placeOf(mark), "the tag " + inQuotes(tag) + " has no meaning here: remove it"};
  }

  void count(size_t nodes, const Place& place) {
    nodes_ += nodes;
    if (nodes_ > kYamlNodesMax)
      throw Stop{place, "more than " + std::to_string(kYamlNodesMax) + " values, aliases expanded"};
  }

  // Counts the text that aliases repeat; the rest is as large as the file.
  void countText(size_t bytes, const Place& place) {
    text_bytes_ += bytes;
    if (text_bytes_ > kYamlAliasBytesMax)
      throw Stop{place, "aliases stand for more than " + std::to_string(kYamlAliasBytesMax) +
                            " bytes of text"};
  }

  YamlNode makeNode(YamlNode::Kind kind, const YAML::Mark& mark) {
    count(1, placeOf(mark));
    YamlNode node;
    node.kind = kind;
    node.place = placeOf(mark);
    node.key_place = node.place;
    return node;
  }

  void open(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag,
            YAML::anchor_t anchor) {
    refuseTag(tag, mark);
    if (stack_.size() >= kYamlDepthMax) stopTooDeep(placeOf(mark));
    if (expectsKey()) throw Stop{placeOf(mark), "a key must be a word, not a list or a map", true};
    Frame frame;
    frame.node = makeNode(kind, mark);
    frame.anchor = anchor;
    stack_.push_back(std::move(frame));
  }

  void close() {
    DTF_CHECK(!stack_.empty() && !stack_.back().has_key);
    Frame frame = std::move(stack_.back());
    stack_.pop_back();
    merge(frame.node);
    add(std::move(frame.node), frame.anchor);
  }

  bool expectsKey() const {
    return !stack_.empty() && stack_.back().node.isMap() && !stack_.back().has_key;
  }

  void takeKey(YamlNode node) {
    DTF_CHECK(expectsKey());
    Frame& frame = stack_.back();
    if (!node.isScalar()) throw Stop{node.place, "a key is missing here"};
    const auto [first, is_new] = frame.key_lines.emplace(node.text, node.place.line);
    if (!is_new)
      report_.error(node.place, "duplicate key " + inQuotes(node.text) + ", first on line " +
                                    std::to_string(first->second));
    frame.has_key = true;
    frame.key = std::move(node.text);
    frame.key_place = node.place;
  }

  void add(YamlNode node, YAML::anchor_t anchor) {
    if (anchor != 0) {
      count(countNodes(node), node.place);
      anchors_[anchor] = node;
    }
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    if (expectsKey()) return takeKey(std::move(node));
    Frame& frame = stack_.back();
    if (frame.node.isMap()) {
      node.key = std::move(frame.key);
      node.key_place = frame.key_place;
      // yaml-cpp places a null at the next token, on another line.
      if (node.isNull()) node.place = node.key_place;
      frame.has_key = false;
    } else {
      node.key.clear();
      node.key_place = node.place;
    }
    frame.node.children.push_back(std::move(node));
  }

  const int source_;
  Report& report_;
  YamlNode root_;
  std::vector<Frame> stack_;
  std::map<YAML::anchor_t, YamlNode> anchors_;
  size_t text_bytes_ = 0;  // repeated by aliases
  size_t nodes_ = 0;
  int documents_ = 0;
};

}  // namespace

const YamlNode* YamlNode::find(std::string_view name) const {
  if (!isMap()) return nullptr;
  const auto found = std::find_if(children.begin(), children.end(),
                                  [&](const YamlNode& child) { return child.key == name; });
  return found == children.end() ? nullptr : &*found;
}

YamlNode* YamlNode::find(std::string_view name) {
  return const_cast<YamlNode*>(std::as_const(*this).find(name));
}

std::optional<YamlNode> parseYaml(const std::string& text, int source, Report& report) {
  if (!checkCharacters(text, source, report)) return std::nullopt;
  TreeBuilder builder(source, report);
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
    return builder.takeRoot();
  } catch (const Stop& stop) {
    reportSyntax(text, stop.place, {stop.message, stop.may_be_open_bracket}, report);
  } catch (const YAML::Exception& e) {
    const Place place{source, std::max(e.mark.line, 0) + 1, std::max(e.mark.column, 0) + 1};
    reportSyntax(text, place, explainSyntax(e.msg), report);
  }
  return std::nullopt;
}

std::optional<YamlNode> parseYamlFile(const std::filesystem::path& path, const Place* named_at,
                                      Report& report) {
  std::string text;
  try {
    text = readFile(placeOfFile(path), kYamlBytesMax);
  } catch (const Error& e) {
    const Place place = named_at != nullptr ? *named_at : Place{report.addFile(path, "")};
    const bool forbidden = e.code() == ErrorCode::kPermission;
    report.error(place, e.message(), forbidden ? e.code() : ErrorCode::kBadConfig);
    return std::nullopt;
  }
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);  // else it shifts the columns of line 1
  const int source = report.addFile(path, text);
  std::optional<YamlNode> root = parseYaml(text, source, report);
  if (root && root->isNull()) {
    report.error({source}, "the file is empty");
    return std::nullopt;
  }
  if (root && !root->isMap()) {
    report.error(root->place, "expected a map of keys and values");
    return std::nullopt;
  }
  return root;
}

}  // namespace dtf::yaml
