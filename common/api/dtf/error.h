#pragma once

// The exception of all functions in <dtf/...>.

#include <stdexcept>
#include <string>

#include "dtf.h"

namespace dtf {
inline namespace v1 {

// what() is a sentence for people: the failure, its place, and the next action.
class Error : public std::runtime_error {
 public:
  Error(dtf_code code, const std::string& message) : std::runtime_error(message), code_(code) {}
  dtf_code code() const { return code_; }

 private:
  dtf_code code_;
};

inline void check(dtf_code code) {
  if (code != DTF_OK) throw Error(code, dtf_error_message());
}

}  // namespace v1
}  // namespace dtf
