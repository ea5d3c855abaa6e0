#include "common/data/libsvm_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/data/bad_records.h"
#include "common/data/csv_fields.h"
#include "common/data/csv_numbers.h"
#include "common/data/csv_other_words.h"
#include "common/data/growing_block.h"
#include "common/data/libsvm_lines.h"

namespace dtf::data {

namespace {

constexpr size_t kBadLinesCounted = 1000;  // as of a table

// Converts labels to classes.
// Owns: the words. Threads: thread-compatible.
class LabelReader {
 public:
  explicit LabelReader(const std::vector<std::string>& class_names) {
    for (const std::string& name : class_names)
      classes_.emplace(className(name), static_cast<int32_t>(classes_.size()));
  }

  // Returns nullopt for a label without a class.
  // Errors: kBadData for -1 beside 0: both would be class 0.
  std::optional<int32_t> find(const LibsvmLines& line) {
    const std::string name = className(line.label());
    if (!classes_.empty()) {
      const auto found = classes_.find(name);
      return found == classes_.end() ? std::nullopt : std::optional(found->second);
    }
    const bool is_minus = name == "-1";
    if (is_minus || name == "0") {
      std::string& first = is_minus ? minus_ : zero_;
      if (first.empty()) first = line.where();
      if (!minus_.empty() && !zero_.empty())
        throw Error(
            ErrorCode::kBadData,
            fmt::format("{}: a label of {}, and {} has one of {}: list the classes with "
                        "class_names: ['-1', '0', '1']",
                        line.where(), name, is_minus ? zero_ : minus_, is_minus ? "0" : "-1"));
      return 0;
    }
    return indexOf(name);
  }

  std::string faultOf(const LibsvmLines& line) const {
    const std::string begin = fmt::format("{}: '{}' is ", line.where(), shown(line.label()));
    if (line.label().find(',') != std::string_view::npos)
      return begin +
             "several labels, and an example of a libsvm file has one: use a table with "
             "target_columns";
    if (!classes_.empty()) return begin + "none of the class_names";
    return begin +
           "no class, a whole number from 0, or -1 and 1: list the classes with "
           "class_names, or set 'labels_as: targets' for numbers to learn";
  }

 private:
  std::map<std::string, int32_t, std::less<>> classes_;
  std::string minus_, zero_;  // the place of the first label of -1, and of 0
};

// Collects the records of files.
// Borrows: the settings.
class Collector {
 public:
  // `predicts`: a label isn't needed, nor read.
  Collector(const cluster::DatasetSpec& spec, bool predicts)
      : spec_(spec),
        predicts_(predicts),
        labels_of_(spec.csv.class_names),
        row_(static_cast<size_t>(libsvmFeatures(spec).shape.elements())),
        bad_("records", predicts ? kAllMayBeBad : spec.csv.max_bad_records, kBadLinesCounted) {
    DTF_CHECK(!row_.empty());
  }

  void readFile(const std::filesystem::path& path) {
    names_ += (names_.empty() ? "" : ", ") + path.string();
    LibsvmLines lines(path);
    while (lines.next()) add(lines);
  }

  void finish() const {
    if (good_ == 0 && bad_.count() == 0)
      throw Error(ErrorCode::kBadData, names_ + ": there is no record");
    bad_.finish(names_, good_);
  }

  Dataset dataset() {
    Part features(libsvmFeatures(spec_), names_, features_.finish());
    return {std::move(features), {libsvmLabels(spec_), names_, labels_.finish()}, {}, bad_.take()};
  }

  UnlabelledExamples examples() {
    UnlabelledExamples examples{{libsvmFeatures(spec_), names_, features_.finish()}, {}};
    examples.unread = bad_.take();
    if (static_cast<int64_t>(truths_.size()) == good_) examples.truths = std::move(truths_);
    return examples;
  }

 private:
  void add(LibsvmLines& line) {
    if (std::string wrong = read(line); !wrong.empty())
      return bad_.add({good_ + bad_.count(), std::move(wrong)});
    ++good_;
    features_.append(row_.data(), row_.size() * sizeof(float));
    if (predicts_) {
      if (!line.label().empty()) truths_.push_back(className(line.label()));
    } else if (spec_.libsvm.are_targets) {
      labels_.append(&target_, sizeof(target_));
    } else {
      labels_.append(&label_, sizeof(label_));
    }
  }

  // Returns the fault of a record with its place, or nothing.
  std::string read(LibsvmLines& line) {
    const int64_t first = spec_.libsvm.zero_based ? 0 : 1;
    if (std::string wrong = line.parse(first); !wrong.empty()) return wrong;
    std::ranges::fill(row_, 0.0F);
    for (const LibsvmValue& each : line.values()) {
      const int64_t place = each.index - first;
      if (place >= static_cast<int64_t>(row_.size()))
        return fmt::format(
            "{}: index {} is beyond the {} numbers of model.input.shape: set it to "
            "the largest index of the files",
            line.where(each.column), each.index, row_.size());
      row_[static_cast<size_t>(place)] = each.value;
    }
    return predicts_ ? "" : readLabel(line);
  }

  std::string readLabel(const LibsvmLines& line) {
    if (line.label().empty()) return line.where() + ": there is no label before the first pair";
    if (!spec_.libsvm.are_targets) {
      const std::optional<int32_t> label = labels_of_.find(line);
      label_ = label.value_or(0);
      return label ? "" : labels_of_.faultOf(line);
    }
    const std::optional<float> target = floatOf(line.label());
    target_ = target.value_or(0);
    return target
               ? ""
               : fmt::format("{}: '{}' is no number to learn", line.where(), shown(line.label()));
  }

  const cluster::DatasetSpec& spec_;
  const bool predicts_;
  LabelReader labels_of_;
  std::vector<float> row_;  // the current record
  int32_t label_ = 0;
  float target_ = 0;
  std::string names_;  // of the files
  GrowingBlock features_, labels_;
  std::vector<std::string> truths_;
  int64_t good_ = 0;
  BadRecords bad_;
};

}  // namespace

Dataset readLibsvm(const cluster::DatasetSpec& spec) {
  DTF_CHECK(!spec.files.empty());
  Collector collector(spec, false);
  for (const std::filesystem::path& path : spec.files) collector.readFile(path);
  collector.finish();
  return collector.dataset();
}

UnlabelledExamples readLibsvmFeatures(const std::filesystem::path& file,
                                      const cluster::DatasetSpec& like) {
  Collector collector(like, true);
  collector.readFile(file);
  collector.finish();
  return collector.examples();
}

PartSpec libsvmFeatures(const cluster::DatasetSpec& spec) {
  return {kFeatures, DType::kFloat32, Shape(spec.libsvm.shape)};
}

PartSpec libsvmLabels(const cluster::DatasetSpec& spec) {
  return spec.libsvm.are_targets ? PartSpec{kLabels, DType::kFloat32, Shape{1}}
                                 : PartSpec{kLabels, DType::kInt32, Shape()};
}

int64_t countLibsvm(std::span<const std::filesystem::path> files) {
  int64_t count = 0;
  for (const std::filesystem::path& path : files)
    for (LibsvmLines lines(path); lines.next();) ++count;
  return count;
}

LibsvmFacts readLibsvmFacts(const std::filesystem::path& file) {
  constexpr size_t kLabelsMax = 10'000;
  LibsvmFacts facts;
  std::set<std::string> labels;
  double squares = 0;
  LibsvmLines lines(file);
  while (lines.next()) {
    std::string wrong = lines.parse(0);
    const std::optional<double> label = numberOf<double>(lines.label());
    if (wrong.empty() && !label)
      wrong = fmt::format("{}: '{}' is no label, a number before the first pair", lines.where(),
                          shown(lines.label()));
    if (!wrong.empty()) throw Error(ErrorCode::kBadData, wrong);
    for (const LibsvmValue& each : lines.values()) {
      if (each.index > kLibsvmIndexMax)
        throw Error(ErrorCode::kBadData,
                    fmt::format("{}: index {} is beyond {}", lines.where(each.column), each.index,
                                kLibsvmIndexMax));
      facts.zero_based = facts.zero_based || each.index == 0;
      facts.width = std::max(facts.width, each.index);
    }
    if (labels.size() <= kLabelsMax) labels.insert(className(lines.label()));
    facts.are_whole = facts.are_whole && *label == std::floor(*label);
    ++facts.examples;
    const double difference = *label - facts.mean;
    facts.mean += difference / static_cast<double>(facts.examples);
    squares += difference * (*label - facts.mean);
  }
  if (facts.examples == 0) throw Error(ErrorCode::kBadData, file.string() + ": it has no record");
  facts.deviation = std::sqrt(squares / static_cast<double>(facts.examples));
  if (facts.zero_based) ++facts.width;
  if (labels.size() <= kLabelsMax) facts.labels.assign(labels.begin(), labels.end());
  std::ranges::sort(facts.labels, {},
                    [](const std::string& label) { return numberOf<double>(label).value_or(0); });
  return facts;
}

bool looksLikeLibsvm(std::string_view begin) {
  constexpr size_t kLinesSeen = 5;
  const auto is_pair = [](std::string_view word) {
    const size_t colon = word.find(':');
    const std::string_view name = word.substr(0, std::min(colon, word.size()));
    return colon != std::string_view::npos && (name == "qid" || numberOf<int64_t>(name));
  };
  size_t seen = 0;
  const std::string whole_lines(begin.substr(0, begin.rfind('\n')));
  for (const std::string& line : split(whole_lines, '\n')) {
    if (seen == kLinesSeen) break;
    std::string text = line.substr(0, line.find('#'));
    std::ranges::replace_if(
        text, [](char c) { return c == '\t' || c == '\r'; }, ' ');
    std::vector<std::string> words = split(text, ' ');
    std::erase(words, "");
    if (words.empty()) continue;
    ++seen;
    if (words.size() < 2 || !numberOf<double>(words[0]) ||
        !std::all_of(words.begin() + 1, words.end(), is_pair))
      return false;
  }
  return seen > 0;
}

}  // namespace dtf::data
