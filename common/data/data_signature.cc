#include "common/data/data_signature.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "common/base/error.h"
#include "common/base/text.h"
#include "common/data/csv_numbers.h"

namespace dtf::data {

namespace {

constexpr std::string_view kVocabulary = "vocabulary";

Json jsonOf(const std::vector<PartSignature>& parts) {
  Json all = Json::array();
  for (const PartSignature& part : parts)
    all.push_back(
        {{"name", part.name}, {"columns", part.columns}, {"preparation", part.preparation}});
  return all;
}

std::vector<PartSignature> partsOf(const Json& all) {
  std::vector<PartSignature> parts;
  for (const Json& each : all) {
    PartSignature part{each.stringAt("name"), each.arrayAt("columns").asStrings()};
    for (const Json& step : each.arrayAt("preparation")) {
      step.stringAt("op");  // an error where there is none
      part.preparation.push_back(step);
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

// Checks that columns without names are numbers from 1, and no more than the table has.
void checkColumns(const DataSignature& signature, const PartSignature& part) {
  if (!signature.isTable()) return;
  const auto fits = [&](const std::string& column) {
    if (signature.header) return true;
    const std::optional<int64_t> number = numberOf<int64_t>(column);
    return number && *number >= 1 && *number <= signature.table_columns;
  };
  const bool few = static_cast<int64_t>(part.columns.size()) <= signature.table_columns;
  if (!part.columns.empty() &&
      (!few || !std::all_of(part.columns.begin(), part.columns.end(), fits)))
    throw Error(ErrorCode::kBadData, "the columns of " + printable(part.name) + " are no such");
}

std::string valueText(const Json& value) {
  constexpr size_t kShownMax = 8;
  const bool are_numbers = value.isArray() && !value.empty() && value[0].isNumber();
  if (are_numbers && value.size() <= kShownMax) return value.dumpAscii();
  if (value.isArray()) return fmt::format("[{}]", value.size());
  return printable(value.isString() ? value.asString() : value.dumpAscii());
}

// "resize method=crop height=28 width=28 channels=1"; long lists as their number.
std::string preparationText(const std::vector<Json>& preparation) {
  std::string text;
  for (const Json& step : preparation) {
    text += (text.empty() ? "" : ", then ") + printable(step.stringAt("op"));
    for (const Json::Member& member : step.members())
      if (member.key != "op")
        text += fmt::format(" {}={}", printable(member.key), valueText(member.value));
  }
  return text.empty() ? "none" : text;
}

const Json* vocabularyOf(const PartSignature& part) {
  for (const Json& step : part.preparation)
    if (step.stringAt("op") == kVocabulary) return step.find("words");
  return nullptr;
}

std::vector<Json> withoutWords(std::vector<Json> preparation) {
  for (Json& step : preparation)
    if (step.contains("words")) step["words"] = Json::array();
  return preparation;
}

bool haveSame(std::vector<std::string> a, std::vector<std::string> b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  return a == b;
}

// Collects the lines of signatureDifference().
class Comparison {
 public:
  explicit Comparison(std::string data) : data_(std::move(data)) {}

  void columns(const PartSignature& model, const PartSignature& other) {
    if (model.columns == other.columns) return;
    if (model.columns.size() > 1 && haveSame(model.columns, other.columns))
      return add(fmt::format(
          "{}: the model was trained on the columns {}, and {} has them in the order {}: say the "
          "model's with feature_columns or categorical_columns",
          printable(model.name), listText(model.columns), data_, listText(other.columns)));
    add(fmt::format("{}: the model was trained on the column{} {}, and {} gives it {}",
                    printable(model.name), model.columns.size() == 1 ? "" : "s",
                    listText(model.columns), data_, listText(other.columns)));
  }

  void preparation(const PartSignature& model, const PartSignature& other, bool of_classes) {
    if (model.preparation == other.preparation) return;
    const Json* const ours = vocabularyOf(model);
    const Json* const theirs = vocabularyOf(other);
    if (ours != nullptr && theirs != nullptr && *ours != *theirs &&
        withoutWords(model.preparation) == withoutWords(other.preparation))
      return words(model.name, ours->asStrings(), theirs->asStrings(), of_classes);
    add(
        fmt::format("{}: the model was trained with the preparation {}, and {} has the "
                    "preparation {}",
                    printable(model.name), preparationText(model.preparation), data_,
                    preparationText(other.preparation)));
  }

  void part(const PartSignature& model, const PartSignature& other, bool of_classes) {
    if (model.name != other.name)
      return add(fmt::format("the model was trained on {}, and {} has {} in its place",
                             printable(model.name), data_, printable(other.name)));
    columns(model, other);
    preparation(model, other, of_classes);
  }

  void parts(const std::vector<PartSignature>& model, const std::vector<PartSignature>& other,
             bool of_classes) {
    if (model.size() != other.size())
      return add(fmt::format("the model was trained on {}, and {} has {}", namesText(model), data_,
                             namesText(other)));
    for (size_t i = 0; i < model.size(); ++i) part(model[i], other[i], of_classes);
  }

  void words(const std::string& part, const std::vector<std::string>& model,
             const std::vector<std::string>& other, bool of_classes) {
    const auto differ =
        std::mismatch(model.begin(), model.end(), other.begin(), other.end()).first - model.begin();
    const auto word = [differ](const std::vector<std::string>& all) {
      const auto index = static_cast<size_t>(differ);
      return index < all.size() ? "'" + printable(all[index]) + "'" : std::string("none");
    };
    add(of_classes
            ? fmt::format("class {} is {} of the {} that the model was trained on, and {} of the "
                          "{} of {}: say their order with class_names, or take the folder away "
                          "that is new",
                          differ, word(model), model.size(), word(other), other.size(), data_)
            : fmt::format("{}: word {} is {} of the {} that the model was trained on, and {} of "
                          "the {} of {}: say the model's with vocabulary_list",
                          printable(part), differ, word(model), model.size(), word(other),
                          other.size(), data_));
  }

  void add(const std::string& line) { text_ += (text_.empty() ? "  " : "\n  ") + line; }
  std::string text() const { return text_; }

 private:
  static std::string namesText(const std::vector<PartSignature>& parts) {
    std::vector<std::string> names;
    for (const PartSignature& part : parts) names.push_back(part.name);
    return listText(names);
  }

  const std::string data_;
  std::string text_;
};

}  // namespace

std::string listText(const std::vector<std::string>& names) {
  constexpr size_t kListedMax = 20;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kListedMax); ++i)
    text += (i == 0 ? "" : ", ") + printable(names[i]);
  if (names.size() > kListedMax) text += fmt::format(" and {} more", names.size() - kListedMax);
  return names.empty() ? "none" : text;
}

std::string asUtf8(std::string_view text) {
  return Json::parse(Json(text).dumpAscii()).asString();
}

std::vector<std::string> asUtf8(const std::vector<std::string>& texts) {
  std::vector<std::string> all;
  for (const std::string& text : texts) all.push_back(asUtf8(text));
  return all;
}

std::string encodeSignature(const DataSignature& signature) {
  Json json = {{"kind", signature.kind}};
  if (signature.isTable()) {
    json["header"] = signature.header;
    json["table_columns"] = signature.table_columns;
  }
  json["inputs"] = jsonOf(signature.inputs);
  json["targets"] = jsonOf(signature.targets);
  return json.dumpAscii();
}

DataSignature decodeSignature(std::string_view text, const std::string& where) {
  try {
    const Json json = Json::parse(text);
    DataSignature signature;
    signature.kind = json.stringAt("kind");
    if (json.contains("table_columns")) {
      signature.header = json.boolAt("header");
      signature.table_columns = json.intAt("table_columns");
    }
    signature.inputs = partsOf(json.arrayAt("inputs"));
    signature.targets = partsOf(json.arrayAt("targets"));
    for (const auto* parts : {&signature.inputs, &signature.targets})
      for (const PartSignature& part : *parts) checkColumns(signature, part);
    return signature;
  } catch (const Error& error) {
    throw Error(error.code(), where + ": its data's signature can't be read: " + error.message());
  }
}

std::vector<std::string> classWords(const DataSignature& signature) {
  for (const PartSignature& part : signature.targets)
    if (const Json* const words = vocabularyOf(part)) return words->asStrings();
  return {};
}

std::string signatureDifference(const DataSignature& model, const DataSignature& other,
                                const std::string& data) {
  Comparison comparison(data);
  if (model.kind != other.kind) {
    const std::vector<std::string> ours = classWords(model), theirs = classWords(other);
    if (!ours.empty() && !theirs.empty() && ours != theirs)
      comparison.words("", ours, theirs, true);
    return comparison.text();
  }
  if (model.isTable() && model.header != other.header) {
    comparison.add(
        fmt::format("the columns of the training table have {}, and the columns of {} have {}: "
                    "only columns with names can be found",
                    model.header ? "names" : "no names", data, other.header ? "names" : "none"));
    return comparison.text();
  }
  comparison.parts(model.inputs, other.inputs, false);
  comparison.parts(model.targets, other.targets, true);
  return comparison.text();
}

}  // namespace dtf::data
