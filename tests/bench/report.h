#pragma once

// The results of a benchmark: rows of named numbers, as a table for people and as JSON for scripts.

#include <string>
#include <utility>
#include <vector>

#include "common/base/json.h"

namespace dtf::bench {

// Thread-compatible.
class Report {
 public:
  // `columns` name the numbers of every row, units included: "rpc GB/s".
  Report(std::string title, std::vector<std::string> columns)
      : title_(std::move(title)), columns_(std::move(columns)) {}

  // One value per column, in order; NaN where there is none.
  void add(std::string what, std::vector<double> values);

  // Rows whose `column` is below their `goal`, as "title: row, 0.60 of 0.70"; none where the report
  // has no such columns, or a row has no number there.
  std::vector<std::string> below(const std::string& column, const std::string& goal) const;

  bool empty() const { return rows_.empty(); }
  std::string table() const;
  Json json() const;

 private:
  struct Row {
    std::string what;
    std::vector<double> values;
  };
  std::string title_;
  std::vector<std::string> columns_;
  std::vector<Row> rows_;
};

double median(std::vector<double> values);                      // of at least one
double percentile(std::vector<double> values, double percent);  // 0..100

}  // namespace dtf::bench
