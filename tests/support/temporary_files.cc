#include "tests/support/temporary_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "common/base/error.h"

namespace dtf::testing {

namespace fs = std::filesystem;

TemporaryFiles::TemporaryFiles() : previous_(fs::current_path()) {
  std::string name = (fs::temp_directory_path() / "dtf-cluster-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    throw Error(ErrorCode::kCannotWrite, "no temporary folder");
  folder_ = name;
  fs::current_path(folder_);
}

TemporaryFiles::~TemporaryFiles() {
  fs::current_path(previous_);
  fs::remove_all(folder_);
}

void TemporaryFiles::write(const fs::path& name, std::string_view text) const {
  if (name.has_parent_path()) fs::create_directories(name.parent_path());
  std::ofstream(name, std::ios::binary) << text;
}

std::string badConfigOf(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kBadConfig) << e.message();
    return e.message();
  }
  return "no error";
}

}  // namespace dtf::testing
