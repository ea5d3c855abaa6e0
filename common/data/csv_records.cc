#include "common/data/csv_records.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"
#include "common/data/file_kind.h"

namespace dtf::data {

namespace {

constexpr int kEndOfFile = -1;

}  // namespace

CsvRecords::CsvRecords(const std::filesystem::path& path, const cluster::CsvSpec& spec)
    : CsvRecords(path, spec.delimiter, spec.comment, spec.skip_lines) {}

CsvRecords::CsvRecords(const std::filesystem::path& path, char delimiter, char comment,
                       int64_t skip_lines)
    : path_(path.string()), delimiter_(delimiter), comment_(comment), source_(path) {
  DTF_CHECK(delimiter != '"' && delimiter != '\n' && delimiter != '\r');
  peek();
  refuseOtherKinds();
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (std::string_view(reinterpret_cast<const char*>(chunk_.data()), held_)
          .starts_with(kByteOrderMark))
    at_ = kByteOrderMark.size();
  for (int64_t line = 0; line < skip_lines && peek() != kEndOfFile; ++line) skipLine();
}

void CsvRecords::fail(int64_t line, const std::string& why) const {
  throw Error(ErrorCode::kBadData, printable(fmt::format("{}:{}: {}", path_, line, why)));
}

void CsvRecords::refuseOtherKinds() {
  const auto first = std::span<const uint8_t>(chunk_).first(std::min(held_, kKindBytes));
  std::string kind = knownKind(first);
  if (kind.empty() && std::find(first.begin(), first.end(), 0) != first.end())
    kind = fileKind(first);
  if (kind.empty()) return;
  throw Error(ErrorCode::kBadData,
              printable(fmt::format("{}: this looks like {}; expected a table in text (CSV)", path_,
                                    kind)));
}

int CsvRecords::peek() {
  if (at_ == held_) {
    held_ = source_.read(chunk_.data(), chunk_.size());
    at_ = 0;
    if (held_ == 0) return kEndOfFile;
  }
  return chunk_[at_];
}

int CsvRecords::take() {
  const int c = peek();
  DTF_CHECK(c != kEndOfFile);
  ++at_;
  ++column_;
  return c;
}

bool CsvRecords::atLineEnd() {
  const int c = peek();
  return c == kEndOfFile || c == '\n' || c == '\r';
}

// Takes "\n", "\r\n" or "\r".
void CsvRecords::takeLineEnd() {
  if (peek() == kEndOfFile) return;
  if (take() == '\r' && peek() == '\n') take();
  ++line_;
  column_ = 1;
}

void CsvRecords::skipLine() {
  while (!atLineEnd()) take();
  takeLineEnd();
}

void CsvRecords::append(int c) {
  if (text_.size() == kCsvRecordBytesMax && quote_line_ > 0)
    fail(quote_line_, fmt::format("the quote in this line is not closed within {} bytes: is it a "
                                  "stray one?",
                                  kCsvRecordBytesMax));
  if (text_.size() == kCsvRecordBytesMax)
    fail(fields_.empty() ? line_ : fields_.front().line,
         fmt::format("the record that begins here has more than {} bytes", kCsvRecordBytesMax));
  text_.push_back(static_cast<char>(c));
}

void CsvRecords::readQuoted() {
  quote_line_ = line_;
  take();
  for (;;) {
    if (peek() == kEndOfFile) fail(quote_line_, "the quote in this line is never closed");
    if (atLineEnd()) {
      takeLineEnd();
      append('\n');
      continue;
    }
    const int c = take();
    if (c == '"') {
      if (peek() != '"') return;
      take();
    }
    append(c);
  }
}

void CsvRecords::readField() {
  if (fields_.size() == kCsvFieldsMax)
    fail(fields_.front().line,
         fmt::format("the record that begins here has more than {} fields", kCsvFieldsMax));
  Field field{text_.size(), 0, line_, column_, line_};
  const bool quoted = peek() == '"';
  if (quoted) readQuoted();
  quote_line_ = 0;
  field.last_line = line_;
  const bool ends = atLineEnd() || peek() == static_cast<uint8_t>(delimiter_);
  if (quoted && !ends && !broken_) broken_ = fields_.size();
  while (!atLineEnd() && peek() != static_cast<uint8_t>(delimiter_)) append(take());
  field.end = text_.size();
  fields_.push_back(field);
}

bool CsvRecords::next() {
  int64_t empty = 0;
  while (peek() != kEndOfFile) {
    if (comment_ != 0 && peek() == static_cast<uint8_t>(comment_)) {
      skipLine();
      continue;
    }
    text_.clear();
    fields_.clear();
    broken_.reset();
    readField();
    while (!atLineEnd()) {
      take();  // the delimiter
      readField();
    }
    const bool quoted = column_ != fields_[0].column || line_ != fields_[0].line;
    last_line_ = line_;
    takeLineEnd();
    if (fields_.size() > 1 || !text_.empty() || quoted) return true;
    if (++empty > kCsvEmptyLinesMax)
      fail(line_, fmt::format("more than {} empty lines before this one", kCsvEmptyLinesMax));
  }
  return false;
}

std::string_view CsvRecords::field(size_t index) const {
  DTF_CHECK(index < fields_.size());
  return std::string_view(text_).substr(fields_[index].begin,
                                        fields_[index].end - fields_[index].begin);
}

std::string CsvRecords::joinedText() const {
  for (size_t i = 0; i < fields_.size(); ++i)
    if (fields_[i].last_line > fields_[i].line)
      return fmt::format("a quote opens at {} and closes in line {}: is it a stray one?", where(i),
                         fields_[i].last_line);
  return "";
}

bool CsvRecords::allLinesFit(
    const std::function<bool(std::span<const std::string_view> fields)>& fits) const {
  const std::array<char, 2> two = {'\n', delimiter_};
  const std::string_view ends(two.data(), two.size());
  std::vector<std::string_view> line;  // never more than size() fields
  for (size_t i = 0; i < size(); ++i) {
    std::string_view rest = field(i);
    const bool is_joined = fields_[i].last_line > fields_[i].line;
    for (;;) {
      if (line.size() == size()) return false;
      const size_t end = is_joined ? rest.find_first_of(ends) : rest.npos;
      line.push_back(rest.substr(0, end));
      if (end == std::string_view::npos) break;
      if (rest[end] == '\n') {
        if (line.size() != size() || !fits(line)) return false;
        line.clear();
      }
      rest.remove_prefix(end + 1);
    }
  }
  return line.size() == size() && fits(line);
}

std::string CsvRecords::where(size_t index) const {
  DTF_CHECK(index < fields_.size());
  return fmt::format("{}:{}:{}", path_, fields_[index].line, fields_[index].column);
}

}  // namespace dtf::data
