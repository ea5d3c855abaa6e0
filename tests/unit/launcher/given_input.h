#pragma once

// Standard input of this process, replaced for a test.

#include <unistd.h>

#include <string_view>

#include "common/base/check.h"

namespace dtf::launcher {

// A pipe with a few bytes in the place of standard input.
// Owns: the descriptor of the input before, which the destructor puts back.
class GivenInput {
 public:
  explicit GivenInput(std::string_view bytes) : before_(::dup(STDIN_FILENO)) {
    int ends[2];
    DTF_CHECK(::pipe(ends) == 0);
    DTF_CHECK(::write(ends[1], bytes.data(), bytes.size()) == ssize_t(bytes.size()));
    ::close(ends[1]);
    ::dup2(ends[0], STDIN_FILENO);
    ::close(ends[0]);
  }
  ~GivenInput() {
    ::dup2(before_, STDIN_FILENO);
    ::close(before_);
  }
  GivenInput(const GivenInput&) = delete;
  GivenInput& operator=(const GivenInput&) = delete;

 private:
  const int before_;
};

}  // namespace dtf::launcher
