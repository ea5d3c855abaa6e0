#include "common/data/libsvm_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/data/csv_fields.h"
#include "common/data/csv_numbers.h"
#include "common/data/csv_other_words.h"
#include "common/data/file_kind.h"
#include "common/data/libsvm_reader.h"

namespace dtf::data {

namespace {

constexpr std::string_view kSpaces = " \t\r";

}  // namespace

LibsvmLines::LibsvmLines(const std::filesystem::path& path) : path_(path.string()), source_(path) {
  held_ = source_.read(chunk_.data(), chunk_.size());
  const auto first = std::span<const uint8_t>(chunk_).first(std::min(held_, kKindBytes));
  std::string kind = knownKind(first);
  if (kind.empty() && std::ranges::find(first, 0) != first.end()) kind = fileKind(first);
  if (!kind.empty())
    throw Error(ErrorCode::kBadData,
                printable(fmt::format("{}: this looks like {}; expected a libsvm file, with lines "
                                      "such as '1 3:0.5 7:1'",
                                      path_, kind)));
}

void LibsvmLines::fail(const std::string& why) const {
  throw Error(ErrorCode::kBadData, printable(fmt::format("{}:{}: {}", path_, line_, why)));
}

// Reads up to the end of the line, without it and without a comment.
bool LibsvmLines::readLine() {
  text_.clear();
  ++line_;
  bool is_any = false, is_comment = false;
  for (;;) {
    if (at_ == held_) {
      held_ = source_.read(chunk_.data(), chunk_.size());
      at_ = 0;
      if (held_ == 0) return is_any;
    }
    is_any = true;
    const std::string_view rest(reinterpret_cast<const char*>(chunk_.data()) + at_, held_ - at_);
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view piece = rest.substr(0, end);
    if (!is_comment) {
      const size_t comment = piece.find('#');
      is_comment = comment != std::string_view::npos;
      text_ += piece.substr(0, comment);
    }
    if (text_.size() > kLibsvmLineBytesMax)
      fail(fmt::format("the line has more than {} bytes", kLibsvmLineBytesMax));
    at_ += end;
    if (end == rest.size()) continue;
    ++at_;
    return true;
  }
}

bool LibsvmLines::next() {
  while (readLine())
    if (text_.find_first_not_of(kSpaces) != std::string::npos) return true;
  return false;
}

std::string LibsvmLines::where(size_t column) const {
  return printable(fmt::format("{}:{}:{}", path_, line_, column == 0 ? label_column_ : column));
}

std::string LibsvmLines::parsePair(std::string_view pair, size_t column, int64_t first) {
  const size_t colon = pair.find(':');
  if (colon == std::string_view::npos)
    return fmt::format("{}: '{}' is no pair such as 3:0.5", where(column), shown(pair));
  const std::string_view name = pair.substr(0, colon);
  if (name == "qid")
    fail(
        fmt::format("'{}' groups records for a ranking, which dtf doesn't learn: remove it, as "
                    "with sed 's/ qid:[0-9]*//'",
                    shown(pair)));
  const std::optional<int64_t> index = numberOf<int64_t>(name);
  if (!index || *index < 0)
    return fmt::format("{}: '{}' in '{}' is no index, a whole number", where(column), shown(name),
                       shown(pair));
  if (*index < first)
    return fmt::format(
        "{}: the index 0 in '{}', and indices begin at 1: set 'zero_based: true' "
        "for a file that counts from 0",
        where(column), shown(pair));
  if (!values_.empty() && *index <= values_.back().index)
    return fmt::format("{}: index {} stands behind {}: the indices of a line ascend", where(column),
                       *index, values_.back().index);
  const std::optional<double> value = numberOf<double>(pair.substr(colon + 1));
  const auto narrow = static_cast<float>(value.value_or(0));
  if (!value || !std::isfinite(narrow))
    return fmt::format("{}: the value '{}' of index {} is no number", where(column),
                       shown(pair.substr(colon + 1)), *index);
  values_.push_back({*index, narrow, column});
  return "";
}

std::string LibsvmLines::parse(int64_t first) {
  DTF_CHECK(first == 0 || first == 1);
  label_ = {};
  values_.clear();
  const std::string_view text = text_;
  bool is_first = true;
  for (size_t at = text.find_first_not_of(kSpaces); at < text.size();) {
    const size_t end = std::min(text.find_first_of(kSpaces, at), text.size());
    const std::string_view word = text.substr(at, end - at);
    if (is_first) label_column_ = at + 1;
    if (is_first && word.find(':') == std::string_view::npos) {
      label_ = word;
    } else if (std::string wrong = parsePair(word, at + 1, first); !wrong.empty()) {
      return wrong;
    }
    is_first = false;
    at = text.find_first_not_of(kSpaces, end);
  }
  DTF_CHECK(!is_first);
  return "";
}

}  // namespace dtf::data
