#include "common/data/byte_block.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "common/base/error.h"
#include "common/base/file.h"
#include "common/data/scratch_file.h"
#include "common/yaml/sent_files.h"

namespace dtf::data {

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
  const ScratchFile file(bytes);
  map(file.fd(), 0, bytes, file.folder());
}

ByteBlock::ByteBlock(const ScratchFile& file, size_t bytes) : bytes_(bytes) {
  DTF_CHECK(bytes > 0);
  map(file.fd(), 0, bytes, file.folder());
}

ByteBlock ByteBlock::ofFile(const std::filesystem::path& path, uint64_t begin, size_t bytes) {
  DTF_CHECK(bytes > 0);
  const Fd file(::open(yaml::placeOfData(path).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
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
  // Only a hint: without it a page is read on its first access.
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
