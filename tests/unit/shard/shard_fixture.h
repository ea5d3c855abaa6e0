#pragma once

// A shard of two workers, and the replies to its calls.

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "common/base/error.h"
#include "common/base/ids.h"
#include "common/shard/declaration.h"
#include "common/shard/shard.h"
#include "tests/unit/shard/shard_driver.h"

namespace dtf::shard {

inline constexpr Incarnation kOne{1};

class ShardTest : public ::testing::Test {
 protected:
  ShardTest() {
    model_.layout = arena::makeLayout({{"v", Shape{16}, {{0, 0, 16}}}}, 1);
    model_.steps = 10;
  }
  // Declares `model` for a process that has passed all earlier calls.
  void declare(uint32_t rank, const arena::ModelDeclaration& model) {
    shard_.workers().join(rank, Incarnation{1});
    shard_.workers().declare(rank, Incarnation{1}, model);
  }
  // Returns the reason for the rejection of `call`; "" when it passes.
  static std::string refusal(const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.message();
    }
    return "";
  }
  replication::WaitCallback recordWait(std::string& what) {
    what = "waits";
    return [&what](const replication::WaitAnswer& answer) {
      const Error* error = std::get_if<Error>(&answer);
      what = error == nullptr ? "passed" : error->message();
    };
  }
  replication::PushCallback recordError(std::string& what) {
    return [&what](const replication::PushAnswer& answer) {
      const Error* error = std::get_if<Error>(&answer);
      what = error == nullptr ? "ok" : error->message();
    };
  }
  ManualClock clock_;
  optimizer::InlineUpdateRunner runner_;
  Shard shard_{ShardOptions{.workers = 2}, clock_, runner_, nullptr};
  arena::ModelDeclaration model_;
};

}  // namespace dtf::shard
