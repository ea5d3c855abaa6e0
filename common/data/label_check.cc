#include "common/data/label_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/data/dataset.h"

namespace dtf::data {

namespace {

[[noreturn]] void failLabels(const Part& labels, const std::string& why) {
  throw Error(ErrorCode::kBadData, labels.source() + ": " + why);
}

// Calls `f` with the numbers in their own type: a span of uint8_t, int32_t or int64_t.
template <class F>
auto withWholeNumbers(const Part& part, F f) {
  switch (part.spec().dtype) {
    case DType::kUInt8:
      return f(part.as<uint8_t>());
    case DType::kInt32:
      return f(part.as<int32_t>());
    case DType::kInt64:
      return f(part.as<int64_t>());
    case DType::kFloat32:
    case DType::kBFloat16:
      break;
  }
  DTF_CHECK_MSG(false, part.spec().name + " that are no whole numbers");
}

// "[1, 2, 3]", "[1, 2, ..., 26]"
std::string countedFromOne(int64_t classes) {
  constexpr int64_t kListedMax = 10;
  std::string list = "[1, 2";
  if (classes > kListedMax) list += fmt::format(", ..., {}", classes);
  for (int64_t i = 3; i <= classes && classes <= kListedMax; ++i) list += fmt::format(", {}", i);
  return list + "]";
}

void checkClassesOf(const Part& labels, int64_t units, std::string_view layer) {
  const int64_t classes = units == 1 ? 2 : units;
  const int64_t all = classesOf(labels);
  if (all <= classes) return;
  withWholeNumbers(labels, [&](auto values) {
    const auto bad = std::find_if(values.begin(), values.end(),
                                  [classes](auto value) { return int64_t{value} >= classes; });
    const std::string what = fmt::format(
        "example {} has label {}, but layer '{}' has {} (labels 0 {} {})", bad - values.begin(),
        *bad, layer, units == 1 ? "one unit" : fmt::format("{} units", units),
        units == 1 ? "and" : "to", classes - 1);
    const int64_t least = *std::min_element(values.begin(), values.end());
    if (least == 1 && all == classes + 1)
      failLabels(labels, fmt::format("{}, and the labels count from 1: for a table list them, "
                                     "'class_names: {}'; for an array subtract 1",
                                     what, countedFromOne(classes)));
    failLabels(labels,
               fmt::format("{}: give it at least {} units, or use other labels", what, all));
  });
}

void checkTargets(const Part& labels, int64_t units, std::string_view layer, TargetRange range) {
  checkTargetCount(labels.spec(), labels.source(), units, layer);
  const int64_t width = labels.spec().shape.elements();
  if (range == TargetRange::kAny) return;
  const std::span<const float> values = labels.as<float>();
  const auto bad = std::find_if(values.begin(), values.end(), [range](float value) {
    return range == TargetRange::kZeroOrOne ? value != 0 && value != 1
                                            : !(value >= 0 && value <= 1);
  });
  if (bad == values.end()) return;
  failLabels(labels, fmt::format("example {} has target {}, but this loss wants {}",
                                 (bad - values.begin()) / width, *bad,
                                 range == TargetRange::kZeroOrOne ? "0 or 1" : "0 to 1"));
}

}  // namespace

void checkTargetCount(const PartSpec& targets, const std::string& source, int64_t units,
                      std::string_view layer) {
  DTF_CHECK(units > 0 && !areClasses(targets));
  const int64_t width = targets.shape.elements();
  if (width == units) return;
  throw Error(
      ErrorCode::kBadData,
      fmt::format("{}: each example has {} target{}, but layer '{}' has {} unit{}: give it "
                  "as many",
                  source, width, width == 1 ? "" : "s", layer, units, units == 1 ? "" : "s"));
}

void checkIndices(const Part& features, int64_t vocabulary, std::string_view layer) {
  DTF_CHECK(vocabulary > 0 && !layer.empty());
  // The kernel's rule for look-ups. It compares first, because a float may fit no integer.
  const auto check = [&](auto values) {
    const auto bad = std::find_if(values.begin(), values.end(), [vocabulary](auto value) {
      return !(value >= 0 && static_cast<double>(value) < static_cast<double>(vocabulary));
    });
    if (bad == values.end()) return;
    const int64_t example = (bad - values.begin()) / features.spec().shape.elements();
    throw Error(
        ErrorCode::kBadData,
        fmt::format("{}: example {} has {}{}, but layer '{}' has a vocabulary of {} (0 to {}): {}",
                    features.source(), example, *bad,
                    features.spec().name == kFeatures ? "" : " as " + features.spec().name, layer,
                    vocabulary, vocabulary - 1,
                    *bad < 0 ? "indices count from 0" : "give it a larger one, or use other data"));
  };
  if (features.spec().dtype == DType::kFloat32) return check(features.as<float>());
  withWholeNumbers(features, check);
}

std::vector<int64_t> classesWithoutExamples(const Part& labels, int64_t classes) {
  std::vector<bool> seen(static_cast<size_t>(classes));
  withWholeNumbers(labels, [&](auto values) {
    for (const auto value : values)
      if (value >= 0 && static_cast<size_t>(value) < seen.size())
        seen[static_cast<size_t>(value)] = true;
  });
  std::vector<int64_t> empty;
  for (int64_t each = 0; each < classes; ++each)
    if (!seen[static_cast<size_t>(each)]) empty.push_back(each);
  return empty;
}

std::vector<std::string> classesWithoutExamples(const Part& labels,
                                                const std::vector<std::string>& names) {
  std::vector<std::string> empty;
  for (const int64_t each : classesWithoutExamples(labels, static_cast<int64_t>(names.size())))
    empty.push_back(names[static_cast<size_t>(each)]);
  return empty;
}

void checkAllClasses(const Part& labels, const std::vector<std::string>& names) {
  constexpr size_t kShownMax = 10;
  std::vector<std::string> empty = classesWithoutExamples(labels, names);
  if (empty.empty()) return;
  std::string text;
  for (size_t i = 0; i < std::min(empty.size(), kShownMax); ++i)
    text += (i == 0 ? "'" : ", '") + printable(empty[i]) + "'";
  if (empty.size() > kShownMax) text += fmt::format(" and {} more", empty.size() - kShownMax);
  failLabels(labels,
             fmt::format("{} of the {} classes {} no example to learn from: {}: is a name "
                         "misspelt? Take a class that there isn't out of class_names, or "
                         "its subfolder away",
                         empty.size(), names.size(), empty.size() == 1 ? "has" : "have", text));
}

std::vector<int64_t> classLabels(const Part& labels) {
  return withWholeNumbers(
      labels, [](auto values) { return std::vector<int64_t>(values.begin(), values.end()); });
}

int64_t classesOf(const Part& labels) {
  return withWholeNumbers(labels, [&](auto values) -> int64_t {
    if (values.empty()) return 0;
    const auto [least, most] = std::minmax_element(values.begin(), values.end());
    if (int64_t{*least} < 0)
      failLabels(labels, fmt::format("example {} has label {}, and classes count from 0: number "
                                     "them, as np.unique(a, return_inverse=True)[1] does",
                                     least - values.begin(), *least));
    return int64_t{*most} + 1;
  });
}

void checkLabels(const Part& labels, int64_t units, std::string_view layer, TargetRange range) {
  DTF_CHECK(units > 0 && !layer.empty());
  if (areClasses(labels.spec())) return checkClassesOf(labels, units, layer);
  checkTargets(labels, units, layer, range);
}

}  // namespace dtf::data
