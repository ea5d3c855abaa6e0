#include "common/data/eval_split.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "common/base/check.h"
#include "common/base/checksum.h"
#include "common/base/error.h"
#include "common/data/label_check.h"

namespace dtf::data {

namespace {

std::vector<uint64_t> checksumsOf(const Dataset& dataset) {
  if (!dataset.splitKeys().empty()) return dataset.splitKeys();
  std::vector<uint64_t> checksums;
  checksums.reserve(static_cast<size_t>(dataset.size()));
  Checksum checksum;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    checksum.reset();
    for (const Part& part : dataset.parts()) checksum.update(part.of(i).data(), part.of(i).size());
    checksums.push_back(checksum.value());
  }
  return checksums;
}

// Returns the class of each example; targets are all of one class.
std::vector<int64_t> groupsOf(const Part& labels) {
  if (areClasses(labels.spec())) return classLabels(labels);
  return std::vector<int64_t>(static_cast<size_t>(labels.count()), 0);
}

bool isBelow(uint64_t checksum, double fraction) {
  return std::ldexp(static_cast<double>(checksum), -64) < fraction;
}

// The last ones are evaluated; examples of one time are on one side.
std::vector<int64_t> examplesByTime(const std::vector<uint64_t>& times,
                                    const cluster::EvalSplit& split, const std::string& source) {
  DTF_CHECK(!times.empty());
  std::vector<uint64_t> sorted = times;
  const double share = static_cast<double>(sorted.size()) * split.fraction;
  const size_t evaluated =
      std::clamp<size_t>(static_cast<size_t>(std::llround(share)), 1, sorted.size());
  const auto border = sorted.end() - static_cast<std::ptrdiff_t>(evaluated);
  std::nth_element(sorted.begin(), border, sorted.end());
  const uint64_t first_time =
      *std::min_element(sorted.begin(), border == sorted.begin() ? sorted.end() : border);
  // At least the first time is trained on.
  uint64_t evaluated_from = *border;
  if (evaluated_from == first_time) {
    evaluated_from = std::numeric_limits<uint64_t>::max();
    for (const uint64_t time : times)
      if (time > first_time) evaluated_from = std::min(evaluated_from, time);
  }
  std::vector<int64_t> chosen;
  bool any = false;
  for (size_t i = 0; i < times.size(); ++i) {
    const bool evaluates = times[i] >= evaluated_from;
    any = any || evaluates;
    if (evaluates == split.evaluates) chosen.push_back(static_cast<int64_t>(i));
  }
  if (!any)
    throw Error(ErrorCode::kBadData,
                source + ": eval_split leaves no example to evaluate, as all are of one time");
  return chosen;
}

// Returns the values of the examples `among`; of all if there are none.
template <class T>
std::vector<T> valuesAmong(std::vector<T> values, std::span<const int64_t> among) {
  if (among.empty()) return values;
  std::vector<T> some;
  some.reserve(among.size());
  for (const int64_t example : among) some.push_back(values.at(static_cast<size_t>(example)));
  return some;
}

Part partOfExamples(const Part& part, std::span<const int64_t> examples) {
  const size_t bytes = part.spec().bytes();
  ByteBlock block(examples.size() * bytes);
  uint8_t* to = block.data();
  for (const int64_t example : examples) {
    std::memcpy(to, part.of(example).data(), bytes);
    to += bytes;
  }
  return {part.spec(), part.source(), std::move(block)};
}

}  // namespace

namespace {

// Returns the places of one side in `checksums`. `groups`: the class of each.
std::vector<int64_t> placesByChecksum(const std::vector<uint64_t>& checksums,
                                      const std::vector<int64_t>& groups,
                                      const cluster::EvalSplit& split, const std::string& source) {
  // The largest checksum of a class is trained on.
  std::map<int64_t, uint64_t> largest;
  for (size_t i = 0; i < checksums.size(); ++i) {
    uint64_t& kept = largest[groups[i]];
    kept = std::max(kept, checksums[i]);
  }
  std::set<uint64_t> kept;
  for (const auto& [group, checksum] : largest) kept.insert(checksum);
  uint64_t smallest = std::numeric_limits<uint64_t>::max();
  bool any = false;
  for (const uint64_t checksum : checksums) {
    if (kept.contains(checksum)) continue;
    smallest = std::min(smallest, checksum);
    any = true;
  }
  if (!any)
    throw Error(
        ErrorCode::kBadData,
        source + (split.by == cluster::SplitBy::kGroup
                      ? ": eval_split leaves no group to evaluate, as each class keeps one to "
                        "train on: there are too few groups"
                      : ": eval_split leaves no example to evaluate, as each class has one: "
                        "name other data with 'eval', or leave eval_split out"));
  std::vector<int64_t> chosen;
  for (size_t i = 0; i < checksums.size(); ++i) {
    const bool evaluates = !kept.contains(checksums[i]) &&
                           (isBelow(checksums[i], split.fraction) || checksums[i] == smallest);
    if (evaluates == split.evaluates) chosen.push_back(static_cast<int64_t>(i));
  }
  return chosen;
}

}  // namespace

std::vector<int64_t> examplesOfSide(const Dataset& dataset, const cluster::EvalSplit& split,
                                    std::span<const int64_t> among) {
  DTF_CHECK(split.fraction > 0 && split.fraction < 1);
  const std::string& source = dataset.labels().source();
  const std::vector<uint64_t> keys = valuesAmong(checksumsOf(dataset), among);
  std::vector<int64_t> places =
      split.by == cluster::SplitBy::kTime
          ? examplesByTime(keys, split, source)
          : placesByChecksum(keys, valuesAmong(groupsOf(dataset.labels()), among), split, source);
  if (!among.empty())
    for (int64_t& place : places) place = among[static_cast<size_t>(place)];
  return places;
}

Dataset sideOf(const Dataset& dataset, const cluster::EvalSplit& split) {
  const std::vector<int64_t> examples = examplesOfSide(dataset, split);
  std::vector<Part> categories;
  for (const Part& part : dataset.categories())
    categories.push_back(partOfExamples(part, examples));
  std::vector<BadRecord> left_out;
  if (!split.evaluates) left_out.assign(dataset.leftOut().begin(), dataset.leftOut().end());
  return {partOfExamples(dataset.features(), examples),
          partOfExamples(dataset.labels(), examples),
          std::move(categories),
          std::move(left_out),
          dataset.otherWords(),
          dataset.recordsRead()};
}

ImageTable evaluatedImages(const ImageTable& table, double fraction) {
  const cluster::EvalSplit split{fraction, true};
  std::vector<bool> is_bad(table.files.size());
  for (const BadRecord& record : table.dataset.leftOut())
    is_bad.at(static_cast<size_t>(record.index)) = true;
  std::vector<std::filesystem::path> good;
  for (size_t i = 0; i < table.files.size(); ++i)
    if (!is_bad[i]) good.push_back(table.files[i]);
  std::vector<std::filesystem::path> files;
  for (const int64_t example : examplesOfSide(table.dataset, split))
    files.push_back(good.at(static_cast<size_t>(example)));
  return {sideOf(table.dataset, split), std::move(files)};
}

}  // namespace dtf::data
