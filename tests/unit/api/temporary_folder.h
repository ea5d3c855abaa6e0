#pragma once

// A folder for the files of a test: these tests see nothing of dtf but libdtf.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <string>

namespace dtf::testing {

// Removed at its end.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_(::testing::TempDir() + "saver-XXXXXX") {
    EXPECT_NE(mkdtemp(path_.data()), nullptr);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace dtf::testing
