#include "common/yaml/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "common/base/check.h"
#include "common/yaml/error_at.h"

namespace dtf::yaml {

namespace {

constexpr size_t kQuotedBytesMax = 80;
constexpr size_t kFlagBytesMax = 200;
constexpr size_t kLineBytesMax = 120;  // of a quoted source line
constexpr int kContextBytes = 60;      // kept before the column when a line is cut

bool isContinuationByte(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}

// Returns the longest prefix of at most `bytes_max` that doesn't end inside a UTF-8 character.
std::string_view clip(std::string_view text, size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  while (bytes_max > 0 && isContinuationByte(text[bytes_max])) --bytes_max;
  return text.substr(0, bytes_max);
}

std::string escape(std::string_view text, size_t bytes_max) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (const char c : clip(text, bytes_max)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || byte == 0x7F) {
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      out += c;
    }
  }
  return text.size() > bytes_max ? out + "..." : out;
}

std::string_view lineOf(std::string_view text, int line) {
  for (; line > 1; --line) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  text = text.substr(0, text.find('\n'));
  if (text.ends_with('\r')) text.remove_suffix(1);
  return text;
}

// Returns the bytes of the first word of `text`: a whole quoted text, or a plain YAML word up to
// its end.
size_t wordLength(std::string_view text) {
  if (text.empty()) return 1;
  if (text[0] == '"' || text[0] == '\'') {
    const size_t end = text.find(text[0], 1);
    return end == std::string_view::npos ? text.size() : end + 1;
  }
  size_t length = 0;
  while (length < text.size()) {
    const std::string_view rest = text.substr(length);
    if (rest.find_first_of(",[]{}") == 0 || rest == ":" || rest.starts_with(": ") ||
        rest.starts_with(" #"))
      break;
    ++length;
  }
  while (length > 1 && text[length - 1] == ' ') --length;
  return std::max<size_t>(1, length);
}

// Returns the line with a caret and tildes below it, under the word at `column`.
std::string showLine(std::string_view text, int line, int column) {
  std::string_view source_line = lineOf(text, line);
  std::string_view prefix;
  if (column > static_cast<int>(kLineBytesMax)) {
    int cut = std::min(column - kContextBytes, static_cast<int>(source_line.size()));
    while (cut < static_cast<int>(source_line.size()) && isContinuationByte(source_line[cut]))
      ++cut;
    source_line.remove_prefix(cut);
    column -= cut;
    prefix = "...";
  }
  source_line = clip(source_line, kLineBytesMax);
  const std::string number = std::to_string(line);
  std::string out = "  " + number + " | ";
  out += prefix;
  out += source_line;
  out += "\n  " + std::string(number.size(), ' ') + " | " + std::string(prefix.size(), ' ');
  const size_t before = std::min<size_t>(std::max(column - 1, 0), source_line.size());
  for (const char c : source_line.substr(0, before)) {
    if (!isContinuationByte(c)) out += c == '\t' ? '\t' : ' ';
  }
  const std::string_view rest = source_line.substr(before);
  const std::string_view word = rest.substr(0, wordLength(rest));
  const auto characters =
      std::count_if(word.begin(), word.end(), [](char c) { return !isContinuationByte(c); });
  return out + "^" + std::string(std::max<size_t>(1, characters) - 1, '~');
}

}  // namespace

std::string inQuotes(std::string_view text) {
  return "'" + escape(text, kQuotedBytesMax) + "'";
}

int Report::addSource(Source source) {
  DTF_CHECK(!source.name.empty());
  sources_.push_back(std::move(source));
  return static_cast<int>(sources_.size()) - 1;
}

int Report::addFile(const std::filesystem::path& path, std::string text) {
  DTF_CHECK(!path.empty());
  return addSource({path.string(), true, std::move(text)});
}

std::map<std::filesystem::path, std::string> Report::files() const {
  std::map<std::filesystem::path, std::string> files;
  for (const Source& source : sources_)
    if (source.is_file)
      files[std::filesystem::absolute(source.name).lexically_normal()] = source.text;
  return files;
}

int Report::addFlag(std::string_view words) {
  DTF_CHECK(words.starts_with("--"));
  return addSource({escape(words, kFlagBytesMax), false, ""});
}

const Report::Source& Report::sourceOf(const Place& place) const {
  DTF_CHECK(place.source >= 0 && place.source < static_cast<int>(sources_.size()));
  return sources_[place.source];
}

void Report::error(const Place& place, std::string message, ErrorCode code) {
  DTF_CHECK(!sourceOf(place).name.empty() && !message.empty());
  mistakes_.push_back({place, std::move(message), code});
}

void Report::warning(const Place& place, std::string message) {
  DTF_CHECK(!sourceOf(place).name.empty() && !message.empty());
  warnings_.push_back({place, std::move(message)});
}

std::string Report::show(const Mistake& mistake, std::string_view severity) const {
  const Source& source = sourceOf(mistake.place);
  const Mark mark = markOf(mistake.place);
  DTF_CHECK_MSG(mark.line >= 0 && mark.column >= 0, mark.str());
  std::string text = fmt::format("{}: {}: {}", mark.str(), severity, mistake.message);
  if (mark.line > 0) text += "\n" + showLine(source.text, mark.line, mark.column);
  return text;
}

void Report::sortByPlace(std::vector<Mistake>& mistakes) {
  const auto key = [](const Mistake& m) {
    return std::tie(m.place.source, m.place.line, m.place.column);
  };
  std::stable_sort(mistakes.begin(), mistakes.end(),
                   [&](const Mistake& a, const Mistake& b) { return key(a) < key(b); });
  // An alias repeats the mistakes of its anchor: one report of each is enough.
  const auto same = [&](const Mistake& a, const Mistake& b) {
    return key(a) == key(b) && a.message == b.message;
  };
  mistakes.erase(std::unique(mistakes.begin(), mistakes.end(), same), mistakes.end());
}

void Report::throwIfAny() const {
  if (mistakes_.empty()) return;
  std::vector<Mistake> sorted = mistakes_;
  sortByPlace(sorted);
  DTF_CHECK(!sorted.empty());
  std::string message;
  for (size_t i = 0; i < std::min(sorted.size(), kShownMax); ++i) {
    if (i > 0) message += "\n";
    message += show(sorted[i], "error");
  }
  if (sorted.size() > kShownMax)
    message += "\nand " + std::to_string(sorted.size() - kShownMax) + " more";
  const bool config = std::any_of(sorted.begin(), sorted.end(), [](const Mistake& mistake) {
    return mistake.code == ErrorCode::kBadConfig;
  });
  throw with(ErrorTrait::kHasPlace,
             Error(config ? ErrorCode::kBadConfig : sorted.front().code, message));
}

void Report::throwFirst() const {
  if (mistakes_.empty()) return;
  std::vector<Mistake> sorted = mistakes_;
  sortByPlace(sorted);
  const Mistake& first = sorted.front();
  throw ErrorAt(first.code, markOf(first.place), first.message);
}

Report Report::withoutMistakes() const {
  Report same = *this;
  same.mistakes_.clear();
  same.warnings_.clear();
  return same;
}

std::vector<std::string> Report::warningTexts() const {
  std::vector<Mistake> sorted = warnings_;
  sortByPlace(sorted);
  std::set<std::pair<int, std::string_view>> shown;
  std::vector<std::string> texts;
  for (const Mistake& warning : sorted)
    if (shown.emplace(warning.place.source, warning.message).second)
      texts.push_back(show(warning, "warning"));
  return texts;
}

std::string Report::warnings() const {
  std::string text;
  for (const std::string& warning : warningTexts()) text += warning + "\n";
  return text;
}

std::filesystem::path Report::folderOf(const Place& place) const {
  const Source& source = sourceOf(place);
  return source.is_file ? std::filesystem::path(source.name).parent_path()
                        : std::filesystem::path();
}

Mark Report::markOf(const Place& place) const {
  const Source& source = sourceOf(place);
  return source.is_file ? Mark{source.name, place.line, place.column} : Mark{source.name};
}

Place Report::placeOf(const Mark& mark) const {
  const auto source = std::find_if(sources_.begin(), sources_.end(),
                                   [&mark](const Source& each) { return each.name == mark.file; });
  DTF_CHECK_MSG(source != sources_.end(), mark.str());
  return {static_cast<int>(source - sources_.begin()), mark.line, mark.column};
}

}  // namespace dtf::yaml
