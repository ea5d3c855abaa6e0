#include "launcher/init/libsvm_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/data/byte_source.h"
#include "common/data/libsvm_reader.h"
#include "common/yaml/error_at.h"
#include "launcher/init/column_facts.h"
#include "launcher/init/yaml_text.h"

namespace dtf::launcher {

namespace {

namespace fs = std::filesystem;

// Whole numbers are classes where they are few, or each has many examples.
bool areClasses(const data::LibsvmFacts& facts) {
  constexpr int64_t kFew = 20, kExamplesOfClass = 10;
  const auto labels = static_cast<int64_t>(facts.labels.size());
  DTF_CHECK(facts.examples > 0);
  return facts.are_whole && labels > 1 && facts.labels.size() <= kListedClassesMax &&
         (labels <= kFew || kExamplesOfClass * labels <= facts.examples);
}

// Whether the labels are the numbers of the classes.
bool areNumbered(const std::vector<std::string>& labels) {
  for (size_t i = 0; i < labels.size(); ++i)
    if (labels[i] != std::to_string(i)) return false;
  return true;
}

std::string labelsText(const LibsvmProfile& profile) {
  constexpr size_t kLabelsShown = 8;
  const std::vector<std::string>& labels = profile.facts.labels;
  if (!profile.learns_classes)
    return fmt::format("the labels are numbers of mean {} and deviation {}",
                       yamlNumber(profile.facts.mean), yamlNumber(profile.facts.deviation));
  std::string text = fmt::format("the labels are {} classes: ", labels.size());
  for (size_t i = 0; i < std::min(labels.size(), kLabelsShown); ++i)
    text += (i == 0 ? "" : ", ") + labels[i];
  if (labels.size() > kLabelsShown) text += " and others";
  return text;
}

}  // namespace

bool isLibsvm(const fs::path& file) {
  constexpr size_t kBytesLookedAt = 65536;
  std::string begin(kBytesLookedAt, '\0');
  begin.resize(data::ByteSource(file).read(reinterpret_cast<uint8_t*>(begin.data()), begin.size()));
  return data::looksLikeLibsvm(begin);
}

LibsvmProfile profileLibsvm(const fs::path& file) {
  LibsvmProfile profile{file, data::readLibsvmFacts(file)};
  if (profile.facts.width == 0 || profile.facts.labels.size() == 1)
    throw yaml::ErrorAt(ErrorCode::kBadData, {printable(file.string()), 0, 0},
                        profile.facts.width == 0 ? "no record has a number to learn from"
                                                 : "all labels are " + profile.facts.labels[0] +
                                                       ", so there is nothing to tell apart");
  profile.learns_classes = areClasses(profile.facts);
  return profile;
}

JobDraft libsvmJob(const LibsvmProfile& profile, const JobPlace& place) {
  const data::LibsvmFacts& facts = profile.facts;
  DTF_CHECK(facts.examples > 0 && facts.width > 0);
  JobDraft draft;
  draft.input = profile.file;
  draft.findings = {
      fmt::format("{}: {} of up to {}, a libsvm file", profile.file.filename().string(),
                  amountText(static_cast<uint64_t>(facts.examples), "example"),
                  amountText(static_cast<uint64_t>(facts.width), "number")),
      labelsText(profile)};
  planExamples(draft, facts.examples, false);
  draft.model = {
      fmt::format("input: {{shape: [{}]}}   # {}", facts.width,
                  facts.zero_based ? "one more than the largest index" : "the largest index"),
      "layers:",
      "  - batch_normalization: {name: numbers}   # finds out the mean and deviation of each "
      "number"};
  addHiddenLayers(draft);
  if (profile.learns_classes)
    addOutput(draft, {.classes = static_cast<int64_t>(facts.labels.size())});
  else
    addOutput(draft, {.mean = facts.mean, .deviation = facts.deviation});
  draft.data = {"train:", "  format: libsvm",
                "  files: [" + yamlPath(profile.file, place.folder()) + "]"};
  if (facts.zero_based) draft.data.emplace_back("  zero_based: true");
  if (!profile.learns_classes)
    draft.data.emplace_back("  labels_as: targets   # numbers to learn");
  else if (!areNumbered(facts.labels))
    for (const std::string& line : split(yamlWords("class_names", facts.labels, 2), '\n'))
      draft.data.push_back(line);
  return draft;
}

}  // namespace dtf::launcher
