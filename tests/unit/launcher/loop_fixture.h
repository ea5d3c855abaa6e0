#pragma once

// A loop that watches the read end of a pipe.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <string_view>

#include "common/base/file.h"
#include "common/net/asio.h"

namespace dtf::launcher {

struct Pipe {
  Pipe() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    read = Fd(ends[0]);
    write = Fd(ends[1]);
  }
  void send(std::string_view text) const {
    EXPECT_EQ(::write(write.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  Fd read, write;
};

// Runs `io` until `done`; a minute at most.
inline void runUntil(boost::asio::io_context& io, const std::function<bool()>& done) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!done()) {
    io.restart();
    ASSERT_TRUE(io.run_one_until(deadline) > 0) << "nothing happens any more";
  }
}

}  // namespace dtf::launcher
