#include "common/model/numbers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/checksum.h"

namespace dtf::model {

// Joins a constant for each run of equal numbers: a Const has one value.
graph::Output vectorOf(graph::Builder& ops, const std::vector<double>& numbers, int64_t count) {
  DTF_CHECK(!numbers.empty());
  if (numbers.size() == 1) return ops.constant(Shape{count}, numbers[0]);
  DTF_CHECK(static_cast<int64_t>(numbers.size()) == count);
  std::vector<graph::Output> parts;
  for (auto first = numbers.begin(); first != numbers.end();) {
    const auto last = std::find_if(first, numbers.end(), [&](double n) { return n != *first; });
    parts.push_back(ops.constant(Shape{last - first}, *first));
    first = last;
  }
  return parts.size() == 1 ? parts[0] : ops.concat(std::move(parts), 0);
}

std::string numbersText(const std::vector<double>& numbers) {
  constexpr size_t kWrittenMax = 32;
  if (numbers.size() <= kWrittenMax) return fmt::format("[{}]", fmt::join(numbers, ", "));
  Checksum checksum;
  checksum.update(numbers.data(), numbers.size() * sizeof(double));
  return fmt::format("({} numbers, {})", numbers.size(), hexOf(checksum.value()));
}

std::vector<double> readNumbers(const yaml::MapReader& settings, const yaml::Key& number,
                                size_t most) {
  std::vector<double> numbers;
  for (const yaml::YamlNode& node : settings.list(number.name))
    if (const auto value = yaml::readNumber(node, number, settings.report()))
      numbers.push_back(*value);
  const yaml::YamlNode* list = settings.find(number.name);
  const bool counted = list == nullptr || !list->isSequence() ||
                       (!list->children.empty() && list->children.size() <= most);
  if (!counted)
    settings.report().error(list->where(), fmt::format("'{}' has from 1 to {} numbers, got {}",
                                                       number.name, most, list->children.size()));
  return numbers;
}

}  // namespace dtf::model
