#include "launcher/standard_input.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string_view>
#include <vector>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/file.h"
#include "common/base/text.h"
#include "common/data/scratch_file.h"
#include "launcher/output.h"

namespace dtf::launcher {

namespace {

constexpr char kInputName[] = "/dev/stdin";
constexpr uint64_t kInputBytesMax = uint64_t{16} << 30;
constexpr size_t kInputChunk = 1 << 20;

// A file that another user has opened may be readable here, and yet not be opened again.
bool isWholeFile() {
  struct stat info {};
  return ::fstat(STDIN_FILENO, &info) == 0 && S_ISREG(info.st_mode) &&
         ::lseek(STDIN_FILENO, 0, SEEK_CUR) == 0 && ::access(kInputName, R_OK) == 0;
}

// Returns the number of bytes read; 0: the end.
size_t readChunk(std::vector<char>& chunk) {
  for (;;) {
    const ssize_t count = ::read(STDIN_FILENO, chunk.data(), chunk.size());
    if (count >= 0) return static_cast<size_t>(count);
    if (errno != EINTR)
      throw Error(ErrorCode::kBadData,
                  fmt::format("{}: cannot read it: {}", kInputName, errnoText(errno)));
  }
}

}  // namespace

bool isStandardInput(const std::filesystem::path& input) {
  return input == "-" || input == kInputName;
}

std::filesystem::path wholeStandardInput() {
  if (isWholeFile()) return kInputName;
  if (::isatty(STDIN_FILENO) == 1)
    printBounded(STDERR_FILENO, "dtf-launch: reading the terminal; Ctrl-D ends the input\n");
  data::ScratchFile file;
  std::vector<char> chunk(kInputChunk);
  uint64_t bytes = 0;
  while (const size_t count = readChunk(chunk)) {
    DTF_CHECK(count <= chunk.size());
    bytes += count;
    if (bytes > kInputBytesMax)
      throw Error(ErrorCode::kBadData,
                  fmt::format("{}: more than {}: write it to a file, and name that with --input",
                              kInputName, bytesText(kInputBytesMax)));
    file.append({chunk.data(), count});
  }
  // The file lives as long as the descriptor.
  DTF_CHECK(::dup2(file.fd(), STDIN_FILENO) == STDIN_FILENO);
  return kInputName;
}

}  // namespace dtf::launcher
