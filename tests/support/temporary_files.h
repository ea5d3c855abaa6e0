#pragma once

// A folder of files for one test, which is the working directory while it runs, so that messages
// have short file names.

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace dtf::testing {

// Thread-hostile: the working directory belongs to the process.
class TemporaryFiles {
 public:
  TemporaryFiles();   // makes the folder and changes to it
  ~TemporaryFiles();  // changes back and removes it
  TemporaryFiles(const TemporaryFiles&) = delete;
  TemporaryFiles& operator=(const TemporaryFiles&) = delete;

  void write(const std::filesystem::path& name, std::string_view text) const;

 private:
  std::filesystem::path previous_;
  std::filesystem::path folder_;
};

// Returns the message of the dtf::Error(kBadConfig) thrown by `action`; "no error" if none.
std::string badConfigOf(const std::function<void()>& action);

}  // namespace dtf::testing
