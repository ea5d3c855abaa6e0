#include "common/model/former_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <vector>

#include "common/base/check.h"
#include "common/base/text.h"

namespace dtf::model {

using yaml::inQuotes;
using yaml::YamlNode;

namespace {

using NameKind = FormerName::Kind;
using NameUse = FormerName::Use;

constexpr FormerName layerRow(std::string_view was, std::string_view now) {
  return {NameKind::kLayer, was, now};
}
constexpr FormerName keyRow(std::string_view layer, std::string_view was, std::string_view now,
                            NameUse use = NameUse::kRenamed) {
  return {NameKind::kKey, was, now, layer, use};
}
constexpr FormerName lossRow(std::string_view was, std::string_view now,
                             NameUse use = NameUse::kRenamed) {
  return {NameKind::kLoss, was, now, {}, use};
}
constexpr FormerName metricRow(std::string_view was, std::string_view now,
                               NameUse use = NameUse::kRenamed) {
  return {NameKind::kMetric, was, now, {}, use};
}

constexpr FormerName kFormerNames[] = {
    layerRow("max_pool", "max_pooling2d"),
    layerRow("avg_pool", "average_pooling2d"),
    layerRow("global_max_pool", "global_max_pooling2d"),
    layerRow("global_avg_pool", "global_average_pooling2d"),
    layerRow("batch_norm", "batch_normalization"),
    layerRow("layer_norm", "layer_normalization"),
    layerRow("normalize", "normalization"),
    layerRow("concat", "concatenate"),

    keyRow("conv2d", "kernel", "kernel_size"),
    keyRow("conv2d", "stride", "strides"),
    keyRow("conv2d", "dilation", "dilation_rate"),
    keyRow("depthwise_conv2d", "kernel", "kernel_size"),
    keyRow("depthwise_conv2d", "multiplier", "depth_multiplier"),
    keyRow("depthwise_conv2d", "stride", "strides"),
    keyRow("depthwise_conv2d", "dilation", "dilation_rate"),
    keyRow("depthwise_conv2d", "kernel_initializer", "depthwise_initializer"),
    keyRow("depthwise_conv2d", "kernel_regularizer", "depthwise_regularizer"),
    keyRow("max_pooling2d", "size", "pool_size"),
    keyRow("max_pooling2d", "stride", "strides"),
    keyRow("max_pooling2d", "kernel", "pool_size", NameUse::kText),
    keyRow("average_pooling2d", "size", "pool_size"),
    keyRow("average_pooling2d", "stride", "strides"),
    keyRow("average_pooling2d", "kernel", "pool_size", NameUse::kText),
    keyRow("reshape", "shape", "target_shape"),
    keyRow("leaky_relu", "alpha", "negative_slope"),
    {NameKind::kKey, "vocabulary", "input_dim", "embedding", NameUse::kRenamed,
     "embeddings_initializer", "glorot_uniform"},
    keyRow("embedding", "dimension", "output_dim"),
    keyRow("embedding", "initializer", "embeddings_initializer"),

    lossRow("softmax_cross_entropy", "sparse_categorical_crossentropy"),
    lossRow("sigmoid_cross_entropy", "binary_crossentropy"),
    lossRow("mse", "mean_squared_error", NameUse::kSynonym),
    lossRow("mae", "mean_absolute_error", NameUse::kSynonym),

    metricRow("top_K", "sparse_top_K_categorical_accuracy"),
    metricRow("mae", "mean_absolute_error", NameUse::kSynonym),
    metricRow("mse", "mean_squared_error", NameUse::kSynonym),
    metricRow("rmse", "root_mean_squared_error"),
    metricRow("r2", "r2_score"),
};

// Returns whether the table of keys belongs to the layer, perhaps with others: "...N.conv2d,
// .dense".
bool isTableOf(std::string_view path, std::string_view layer) {
  const std::string name = fmt::format(".{}", layer);
  const size_t at = path.find(name);
  if (at == std::string_view::npos) return false;
  const size_t end = at + name.size();
  return end == path.size() || path[end] == ',';
}

bool isNameOf(const FormerName& row, std::string_view table_path, std::string_view key) {
  switch (row.kind) {
    case NameKind::kLayer:
      return table_path == "train.model.layers.N" && row.now == key;
    case NameKind::kKey:
      return row.use != NameUse::kText && row.now == key && isTableOf(table_path, row.layer);
    case NameKind::kLoss:
      return table_path == "train.model.loss" && row.now == key;
    case NameKind::kMetric:
      return table_path == "train.model" && key == "metrics";
  }
  DTF_CHECK_MSG(false, std::string(row.was));
}

// Returns the number in a default name of the type `word`: "_1" of "batch_norm_1", "" of
// "batch_norm"; nullopt for any other name.
std::optional<std::string_view> defaultNumber(std::string_view name, std::string_view word) {
  if (!name.starts_with(word)) return std::nullopt;
  const std::string_view rest = name.substr(word.size());
  if (rest.empty()) return rest;
  const bool digits = rest.size() > 1 && std::all_of(rest.begin() + 1, rest.end(), [](char c) {
                        return std::isdigit(static_cast<unsigned char>(c)) != 0;
                      });
  return rest[0] == '_' && digits ? std::optional(rest) : std::nullopt;
}

// Returns today's form of a layer's default name, and with `with_losses` of a loss; other words
// unchanged.
std::string todaysWord(std::string_view word, bool with_losses) {
  for (const FormerName& row : kFormerNames) {
    if (row.kind == NameKind::kLayer)
      if (const auto number = defaultNumber(word, row.was))
        return std::string(row.now) + std::string(*number);
    if (row.kind == NameKind::kLoss && with_losses && row.was == word) return std::string(row.now);
  }
  return std::string(word);
}

// Applies todaysWord() to each word of letters, digits, '.', '_' and '-', the characters of names.
std::string todaysWords(std::string_view text, bool with_losses) {
  const auto in_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-';
  };
  std::string result;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && in_word(text[end])) ++end;
    if (end > at)
      result += todaysWord(text.substr(at, end - at), with_losses);
    else
      result += text[end++];
    at = end;
  }
  return result;
}

// Turns "kernel=3x3" of a conv2d into "kernel_size=3x3". Empty for a name that only repeats the
// type.
std::string todaysToken(const std::string& token, std::string_view type) {
  const size_t equals = token.find('=');
  if (equals == std::string::npos) return token;
  const std::string_view word = std::string_view(token).substr(0, equals);
  if (word == "name" && beginsWithType(token.substr(equals + 1), type)) return {};
  for (const FormerName& row : kFormerNames)
    if (row.kind == NameKind::kKey && row.layer == type && row.was == word)
      return std::string(row.now) + token.substr(equals);
  return token;
}

std::string todaysLine(const std::string& line) {
  const std::string words = todaysWords(line, true);
  const size_t begin = std::min(words.find_first_not_of(' '), words.size());
  const std::vector<std::string> tokens = split(words.substr(begin), ' ');
  std::string result = words.substr(0, begin);
  for (size_t i = 0; i < tokens.size(); ++i) {
    const std::string token = i == 0 ? tokens[i] : todaysToken(tokens[i], tokens[0]);
    if (i > 0 && token.empty() && !tokens[i].empty()) continue;
    result += (i == 0 ? "" : " ") + token;
  }
  return result;
}

// Gives `word` its name in `row`, if any; warns unless that is a synonym.
void renameTo(const FormerName* row, std::string& word, const yaml::Place& place,
              yaml::Report& report) {
  if (row == nullptr) return;
  if (row->use == NameUse::kRenamed) {
    std::string more;
    if (!row->implied_key.empty())
      more = fmt::format(
          ", with which '{0}' has another default: add '{0}: {1}' for the same initial values",
          row->implied_key, row->implied_value);
    warnOfFormerName(row->was, row->now, place, report, more);
  }
  word = row->now;
}

// Renames the keys of the layer `settings.key`, and adds the implied ones.
void renameKeys(YamlNode& settings, yaml::Report& report) {
  if (!settings.isMap()) return;
  std::vector<YamlNode> kept, implied;
  for (YamlNode& child : settings.children) {
    const FormerName* const row = formerName(NameKind::kKey, child.key, settings.key);
    if (row != nullptr && settings.find(row->now) != nullptr) {
      report.error(child.key_place, fmt::format("{} is called {} now, and the layer has both: "
                                                "leave one out",
                                                inQuotes(row->was), inQuotes(row->now)));
      continue;
    }
    if (row != nullptr && !row->implied_key.empty()) {
      YamlNode value;
      value.kind = YamlNode::Kind::kScalar;
      value.key = row->implied_key;
      value.text = row->implied_value;
      value.place = value.key_place = child.key_place;
      implied.push_back(std::move(value));
    }
    kept.push_back(child);
    renameTo(row, kept.back().key, child.key_place, report);
  }
  settings.children = std::move(kept);
  for (YamlNode& value : implied)
    if (settings.find(value.key) == nullptr) settings.children.push_back(std::move(value));
}

}  // namespace

std::span<const FormerName> formerNames() {
  return kFormerNames;
}

const FormerName* formerName(NameKind kind, std::string_view was, std::string_view layer) {
  const auto* const found =
      std::find_if(std::begin(kFormerNames), std::end(kFormerNames), [&](const FormerName& row) {
        return row.kind == kind && row.was == was && row.layer == layer &&
               row.use != NameUse::kText;
      });
  return found == std::end(kFormerNames) ? nullptr : found;
}

std::string formerlyText(std::string_view table_path, std::string_view key) {
  std::string formerly, also;
  std::string_view last;  // layers that share a table have a row each
  for (const FormerName& row : formerNames()) {
    if (!isNameOf(row, table_path, key) || row.was == last) continue;
    last = row.was;
    std::string& text = row.use == NameUse::kSynonym ? also : formerly;
    text += (text.empty() ? "" : ", ") + std::string(row.was);
  }
  std::string names = also.empty() ? "" : "also " + also;
  if (!formerly.empty()) names += (names.empty() ? "formerly " : "; formerly ") + formerly;
  return names;
}

void warnOfFormerName(std::string_view was, std::string_view now, const yaml::Place& place,
                      yaml::Report& report, std::string_view more) {
  report.warning(place, fmt::format("{} is called {} now{}", inQuotes(was), inQuotes(now), more));
}

void useTodaysLoss(YamlNode& loss, yaml::Report& report) {
  if (loss.isScalar())
    renameTo(formerName(NameKind::kLoss, loss.text), loss.text, loss.place, report);
  if (!loss.isMap()) return;
  for (YamlNode& child : loss.children)
    renameTo(formerName(NameKind::kLoss, child.key), child.key, child.key_place, report);
}

LayerUse withTodaysNames(const YamlNode& element, yaml::Report& report) {
  LayerUse use{element, {}};
  if (element.isScalar()) {
    use.word = element.text;
    renameTo(formerName(NameKind::kLayer, use.word), use.node.text, element.place, report);
    return use;
  }
  if (!element.isMap() || element.children.empty()) return use;
  use.word = element.children[0].key;
  for (YamlNode& layer : use.node.children) {
    renameTo(formerName(NameKind::kLayer, layer.key), layer.key, layer.key_place, report);
    renameKeys(layer, report);
  }
  return use;
}

std::string otherDefaultName(std::string_view name, std::string_view word, std::string_view type) {
  const auto number = defaultNumber(name, word);
  DTF_CHECK_MSG(number.has_value(), std::string(name));
  for (const FormerName& row : kFormerNames)
    if (row.kind == NameKind::kLayer && row.now == type)
      return std::string(word == type ? row.was : row.now) + std::string(*number);
  return {};
}

bool beginsWithType(std::string_view name, std::string_view type) {
  return name.starts_with(type) ||
         std::any_of(std::begin(kFormerNames), std::end(kFormerNames), [&](const FormerName& row) {
           return row.kind == NameKind::kLayer && row.now == type && name.starts_with(row.was);
         });
}

std::string todaysVariable(std::string_view variable) {
  return todaysWords(variable, false);
}

std::string todaysText(std::string_view text) {
  std::string result;
  bool first = true;
  for (const std::string& line : split(text, '\n')) {
    result += (first ? "" : "\n") + todaysLine(line);
    first = false;
  }
  return result;
}

}  // namespace dtf::model
