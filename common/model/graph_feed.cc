#include "common/model/graph_feed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/model/graph_file_schema.h"
#include "common/yaml/keys.h"
#include "common/yaml/map_reader.h"

namespace dtf::model {
namespace {

using yaml::Report;
using yaml::YamlNode;

// A double holds every whole number up to this one.
constexpr double kFedWholeMax = 9007199254740992;

std::string fedText(const graph::TensorSpec& spec) {
  return std::string(dtypeName(spec.dtype)) + spec.shape.str();
}

// Appends all numbers of a list, nested lists included, in order.
bool readFedNumbers(const YamlNode& node, const yaml::Key& key, Report& report,
                    std::vector<double>& numbers) {
  if (!node.isSequence()) {
    const auto number = yaml::readNumber(node, key, report);
    if (number) numbers.push_back(*number);
    return number.has_value();
  }
  return std::all_of(node.children.begin(), node.children.end(), [&](const YamlNode& child) {
    return readFedNumbers(child, key, report, numbers);
  });
}

bool isFedAs(DType dtype, double number) {
  const auto isWithin = [number](double least, double most) {
    return number == std::trunc(number) && number >= least && number <= most;
  };
  switch (dtype) {
    case DType::kFloat32:
      return true;
    case DType::kUInt8:
      return isWithin(0, UINT8_MAX);
    case DType::kInt32:
      return isWithin(INT32_MIN, INT32_MAX);
    case DType::kInt64:
      return isWithin(-kFedWholeMax, kFedWholeMax);
    case DType::kBFloat16:
      break;
  }
  return false;
}

}  // namespace

std::optional<GraphFeed> readGraphFeed(const YamlNode& node, const graph::TensorSpec& spec,
                                       Report& report) {
  GraphFeed feed{.tensor = node.key,
                 .spec = spec,
                 .mark = report.markOf(node.where()),
                 .part = {},
                 .numbers = {}};
  const auto refuse = [&](const std::string& why) {
    report.error(node.where(), fmt::format("'{}' is {}: {}", node.key, fedText(spec), why));
    return std::nullopt;
  };
  if (node.isScalar() && (node.text == "features" || node.text == "labels")) {
    feed.part = node.text;
    return feed;
  }
  if (node.find("data") != nullptr || node.find("tower") != nullptr) {
    const yaml::MapReader reader(node, kGraphFeedTable, node.key, report);
    const bool has_part = reader.word("data", feed.part);
    reader.whole("tower", feed.tower);
    return has_part ? std::optional(std::move(feed)) : std::nullopt;
  }
  const bool is_word = node.isScalar() &&
                       (node.quoted || node.text.find_first_of("0123456789") == std::string::npos);
  if (is_word || (!node.isScalar() && !node.isSequence()))
    return refuse(
        "it is fed a number, a list of numbers, 'features' or 'labels' of 'data', or a "
        "map such as {data: features, tower: 1}");
  const yaml::Key key = yaml::number(node.key, {-1e38, 1e38, false, false}, "");
  if (!readFedNumbers(node, key, report, feed.numbers)) return std::nullopt;
  if (node.isSequence() && static_cast<int64_t>(feed.numbers.size()) != spec.shape.elements())
    return refuse(fmt::format("the list has {} numbers, it must have {}", feed.numbers.size(),
                              spec.shape.elements()));
  for (const double number : feed.numbers)
    if (!isFedAs(spec.dtype, number))
      return refuse(fmt::format("{} is none of its numbers", number));
  return feed;
}

}  // namespace dtf::model
