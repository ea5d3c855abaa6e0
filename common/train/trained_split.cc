#include "common/train/trained_split.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "common/base/text.h"
#include "common/train/checkpointer.h"

namespace dtf::train {

std::optional<double> trainedSplit(const checkpoint::Manifest& saved) {
  constexpr std::string_view kSplit = "data.eval_split=";
  const auto settings = saved.extra.find(kSettingsKey);
  if (settings == saved.extra.end()) return std::nullopt;
  for (const std::string& line : split(settings->second, '\n')) {
    if (!line.starts_with(kSplit)) continue;
    double share = 0;
    const char* const end = line.data() + line.size();
    const auto read = std::from_chars(line.data() + kSplit.size(), end, share);
    return read.ptr == end ? std::optional(share) : std::nullopt;
  }
  return 0;
}

std::string trainedExamplesText(std::optional<double> trained, double split) {
  if (!trained || split <= *trained) return {};
  return fmt::format("some examples that are evaluated were trained: data.eval_split {} -> {}",
                     *trained == 0 ? "none" : fmt::format("{}", *trained), split);
}

}  // namespace dtf::train
