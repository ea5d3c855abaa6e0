#pragma once

// An Error about a place in a file or on the command line that was found after reading: a layer
// that doesn't fit the one before, a missing data file.

#include <string>
#include <utility>

#include "common/base/error.h"
#include "common/yaml/mark.h"

namespace dtf::yaml {

// Value type. Its message is in compiler form, "job.yaml:9:7: error: REASON". Code that still has
// the file's Report uses the parts instead, and shows the line too.
class ErrorAt : public Error {
 public:
  ErrorAt(ErrorCode code, Mark mark, std::string reason)
      : Error(code, (mark.file.empty() ? "" : mark.str() + ": ") + "error: " + reason),
        mark_(std::move(mark)),
        reason_(std::move(reason)) {
    if (!mark_.file.empty()) add(ErrorTrait::kHasPlace);
  }
  const Mark& mark() const { return mark_; }
  const std::string& reason() const { return reason_; }

 private:
  Mark mark_;
  std::string reason_;
};

}  // namespace dtf::yaml
