#pragma once

// An Error about something that a file or the command line says, which was found after reading it:
// a layer that doesn't fit the one before, a data file that isn't there.

#include <string>
#include <utility>

#include "common/base/error.h"
#include "common/yaml/mark.h"

namespace dtf::yaml {

// Value type. Its message is in compiler form, "job.yaml:9:7: error: REASON"; whoever still has the
// Report of the file takes the parts instead, and shows the line too.
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
