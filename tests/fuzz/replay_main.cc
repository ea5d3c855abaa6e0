// Runs a fuzz target over the files of a folder: its corpus as an ordinary test, with any compiler.
// A whole folder must reach the target's events (reached.h).
// Usage: replay_<name> FOLDER_OR_FILE...

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/reached.h"

int main(int argc, char** argv) {
  // The calls of a corpus must not count as tested.
  ::unsetenv("DTF_CALL_LOG");
  namespace fs = std::filesystem;
  std::vector<fs::path> files;
  bool whole = false;
  for (int i = 1; i < argc; ++i) {
    if (!fs::is_directory(argv[i])) {
      files.emplace_back(argv[i]);
      continue;
    }
    whole = true;
    for (const auto& entry : fs::directory_iterator(argv[i])) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& path : files) {
    std::printf("%s\n", path.filename().c_str());
    std::fflush(stdout);  // the last name is the one that crashed
    std::ifstream file(path, std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(file), {});
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  }
  std::printf("%zu inputs\n", files.size());
  bool missed = false;
  for (const auto& [name, times] : dtf::fuzz::reached()) {
    std::printf("reached: %s, %lu times\n", name.c_str(), static_cast<unsigned long>(times));
    missed |= times == 0;
  }
  if (whole && missed) std::printf("the corpus no longer reaches all that it must\n");
  return files.empty() || (whole && missed) ? 1 : 0;
}
