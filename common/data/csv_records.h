#pragma once

// The records of a table in text (RFC 4180: fields between delimiters, "quoted" ones may hold
// delimiters, line ends and "" for a quote), one at a time, with the place of each field.

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/cluster/data_spec.h"
#include "common/data/byte_source.h"

namespace dtf::data {

inline constexpr size_t kCsvRecordBytesMax = size_t{16} << 20;
inline constexpr size_t kCsvFieldsMax = size_t{1} << 20;  // of one record
inline constexpr int64_t kCsvEmptyLinesMax = 1'000'000;   // one after another

// Owns: the file and the current record.
// Threads: thread-compatible.
// Blocks: on the disk.
// Errors: see ByteSource; kBadData naming file and line for bytes that are no text, a quote that is
// never closed, and a record of more than kCsvRecordBytesMax bytes or kCsvFieldsMax fields, or
// behind more than kCsvEmptyLinesMax empty lines.
class CsvRecords {
 public:
  // `comment`: lines that begin with it are skipped, outside of quotes; 0: none are. `skip_lines`:
  // lines at the start that aren't read; the file may have fewer.
  CsvRecords(const std::filesystem::path& path, char delimiter, char comment = 0,
             int64_t skip_lines = 0);
  // Reads a table in the form that `spec` says.
  CsvRecords(const std::filesystem::path& path, const cluster::CsvSpec& spec);

  // Reads the next record that isn't an empty line; returns false at the end of the file.
  bool next();

  size_t size() const { return fields_.size(); }
  int64_t line() const { return fields_.front().line; }  // where the record begins
  int64_t lines() const { return last_line_ - fields_.front().line + 1; }  // that the record takes
  // Returns where the first quoted field with a line end opens and closes: "a quote opens at
  // a.csv:3:5 and closes in line 39: is it a stray one?". Empty: there is none.
  std::string joinedText() const;
  // Divides each line of the record at delimiters, without regard to the quotes around line ends.
  // Returns whether each has size() fields and `fits`; the first that doesn't is the last one read.
  // The fields are valid for one call of `fits`.
  bool allLinesFit(const std::function<bool(std::span<const std::string_view> fields)>& fits) const;
  // The first field with something after its closing quote; nullopt: none.
  std::optional<size_t> broken() const { return broken_; }
  // Valid until the next call of next().
  std::string_view field(size_t index) const;
  // "a.csv:17:12", lines and bytes of a line counted from 1.
  std::string where(size_t index) const;

 private:
  struct Field {
    size_t begin = 0, end = 0;  // in text_
    int64_t line = 0, column = 0;
    int64_t last_line = 0;
  };
  [[noreturn]] void fail(int64_t line, const std::string& why) const;
  void refuseOtherKinds();
  int peek();
  int take();
  bool atLineEnd();
  void takeLineEnd();
  void skipLine();
  void append(int c);
  void readField();
  void readQuoted();

  const std::string path_;
  const char delimiter_;
  const char comment_;
  ByteSource source_;
  std::array<uint8_t, 65536> chunk_;
  size_t at_ = 0, held_ = 0;
  int64_t line_ = 1, column_ = 1;
  std::string text_;  // the fields of the record, one after another, without quotes
  std::vector<Field> fields_;
  int64_t last_line_ = 1;
  std::optional<size_t> broken_;
  int64_t quote_line_ = 0;  // of the open quote; 0: none
};

}  // namespace dtf::data
