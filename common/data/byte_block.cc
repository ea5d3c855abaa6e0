#include "common/data/byte_block.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "common/base/error.h"
#include "common/base/file.h"
#include "common/base/text.h"
#include "common/yaml/sent_files.h"

namespace dtf::data {

namespace {

// Not /tmp, which may be in memory.
std::filesystem::path scratchFolder() {
  const char* const given = std::getenv("TMPDIR");
  return given != nullptr && *given != '\0' ? given : "/var/tmp";
}

[[noreturn]] void failScratch(const std::filesystem::path& folder, size_t bytes, int errno_value) {
  throw Error(
      ErrorCode::kCannotWrite,
      fmt::format("cannot keep {} of examples in a file in {}: {} ({}): set TMPDIR to a "
                  "folder on a disk with that much room",
                  bytesText(bytes), folder.string(), std::strerror(errno_value), errno_value));
}

// A file without a name, with room for so many bytes: what is written later must not find the disk full.
Fd scratchFile(const std::filesystem::path& folder, size_t bytes) {
  std::string name = (folder / "dtf-examples-XXXXXX").string();
  Fd file(::mkostemp(name.data(), O_CLOEXEC));
  if (!file.valid()) failScratch(folder, bytes, errno);
  ::unlink(name.c_str());
  if (const int wrong = ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes)); wrong != 0)
    failScratch(folder, bytes, wrong);
  return file;
}

}  // namespace

void ByteBlock::Release::operator()(uint8_t* bytes) const {
  if (mapping == nullptr)
    delete[] bytes;
  else
    ::munmap(mapping, mapped_bytes);
}

ByteBlock::ByteBlock(size_t bytes, size_t resident_max) : bytes_(bytes) {
  if (bytes <= resident_max) {
    data_.reset(new uint8_t[bytes]);
    return;
  }
  const std::filesystem::path folder = scratchFolder();
  const Fd file = scratchFile(folder, bytes);
  map(file.get(), 0, bytes, folder);
}

ByteBlock ByteBlock::ofFile(const std::filesystem::path& path, uint64_t begin, size_t bytes) {
  DTF_CHECK(bytes > 0);
  const Fd file(::open(yaml::placeOfData(path).c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!file.valid() || ::fstat(file.get(), &status) != 0)
    throw Error(
        errno == EACCES ? ErrorCode::kPermission : ErrorCode::kBadData,
        fmt::format("{}: cannot open it: {} ({})", path.string(), std::strerror(errno), errno));
  const auto held = static_cast<uint64_t>(status.st_size);
  if (held < begin || held - begin < bytes)
    throw Error(ErrorCode::kBadData, path.string() + ": the file became shorter while it was read");
  ByteBlock block;
  block.bytes_ = bytes;
  block.read_only_ = true;
  block.map(file.get(), begin, bytes, path);
  return block;
}

void ByteBlock::willNeed(size_t begin, size_t bytes) const {
  DTF_CHECK(onDisk() && begin <= bytes_ && bytes <= bytes_ - begin);
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<uintptr_t>(data_.get() + begin);
  const uintptr_t before = first % page;
  // No more than a hint: without it the page is brought when it is read.
  ::madvise(reinterpret_cast<void*>(first - before), before + bytes, MADV_WILLNEED);
}

void ByteBlock::map(int fd, uint64_t begin, size_t bytes, const std::filesystem::path& path) {
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const uint64_t before = begin % page;
  const size_t mapped = static_cast<size_t>(before) + bytes;
  void* const mapping = read_only_ ? ::mmap(nullptr, mapped, PROT_READ, MAP_PRIVATE, fd,
                                            static_cast<off_t>(begin - before))
                                   : ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                                            static_cast<off_t>(begin - before));
  if (mapping == MAP_FAILED)
    throw Error(ErrorCode::kBadData, fmt::format("{}: cannot map {} bytes: {} ({})", path.string(),
                                                 mapped, std::strerror(errno), errno));
  data_ = {static_cast<uint8_t*>(mapping) + before, Release{mapping, mapped}};
  DTF_CHECK(onDisk());
}

}  // namespace dtf::data
