#pragma once

// A shard of two workers, and what its calls are answered with.

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/ps/declaration.h"
#include "common/ps/shard.h"
#include "tests/unit/ps/shard_driver.h"

namespace dtf::ps {

inline constexpr Incarnation kOne{1};

class ShardTest : public ::testing::Test {
 protected:
  ShardTest() {
    model_.layout = makeLayout({{"v", Shape{16}, {{0, 0, 16}}}}, 1);
    model_.steps = 10;
  }
  // A process that has done all that comes before its first question for parameters.
  void declare(uint32_t rank, const ModelDeclaration& model) {
    shard_.join(rank, Incarnation{1});
    shard_.declare(rank, Incarnation{1}, model);
  }
  // Why that is refused; "" when it is not.
  static std::string refusal(const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.message();
    }
    return "";
  }
  WaitCallback recordWait(std::string& what) {
    what = "waits";
    return [&what](const WaitAnswer& answer) {
      const Error* error = std::get_if<Error>(&answer);
      what = error == nullptr ? "passed" : error->message();
    };
  }
  PushCallback recordError(std::string& what) {
    return [&what](const PushAnswer& answer) {
      const Error* error = std::get_if<Error>(&answer);
      what = error == nullptr ? "ok" : error->message();
    };
  }
  ManualClock clock_;
  InlineUpdateRunner runner_;
  Shard shard_{ShardOptions{.workers = 2}, clock_, runner_, nullptr};
  ModelDeclaration model_;
};

}  // namespace dtf::ps
