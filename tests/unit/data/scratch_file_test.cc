#include "common/data/scratch_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>

#include "common/base/error.h"
#include "tests/support/temporary_files.h"

namespace dtf::data {
namespace {

TEST(ScratchFile, HasNoNameAndHoldsWhatIsAppended) {
  ScratchFile file;
  file.append("01234");
  file.append("56789");
  struct stat status {};
  ASSERT_EQ(::fstat(file.fd(), &status), 0);
  EXPECT_EQ(status.st_nlink, 0u);
  std::string bytes(static_cast<size_t>(status.st_size), '\0');
  ASSERT_EQ(::pread(file.fd(), bytes.data(), bytes.size(), 0), 10);
  EXPECT_EQ(bytes, "0123456789");
}

TEST(ScratchFile, TakesItsRoomBeforehand) {
  const ScratchFile file(100'000);
  struct stat status {};
  ASSERT_EQ(::fstat(file.fd(), &status), 0);
  EXPECT_EQ(status.st_size, 100'000);
  EXPECT_GE(status.st_blocks * 512, 100'000);
}

// A limit on this process's files stands for a full disk.
TEST(ScratchFile, WhatHasNoRoomIsSaidWithItsSize) {
  ScratchFile file;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{4096, before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string message;
  try {
    file.append(std::string(6144, 'x'));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCannotWrite);
    message = error.message();
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(message, "cannot keep 6.0 KiB of examples in a file in " + file.folder().string() +
                         ": File too large (27): set TMPDIR to a folder on a disk with that much "
                         "room");
}

}  // namespace
}  // namespace dtf::data
