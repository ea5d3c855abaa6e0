#include "common/base/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "common/base/check.h"
#include "common/base/error.h"

namespace dtf {

namespace {

// F_SEAL_SHRINK: a reader would be killed (SIGBUS) if another process truncated the file.
// F_SEAL_FUTURE_WRITE: nothing else can punch holes into it. The reader would have to allocate
// their pages.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE;

// <linux/magic.h>; huge pages have another type
constexpr decltype(statfs::f_type) kTmpfs = 0x01021994;

// Linux 6.3 and later warns unless the file is marked as not executable; older kernels don't know
// the flag.
int makeMemfd() {
  constexpr unsigned kNoExecSeal = 0x0008;  // <linux/memfd.h>
  const int fd = ::memfd_create("dtf", MFD_CLOEXEC | MFD_ALLOW_SEALING | kNoExecSeal);
  return fd >= 0 || errno != EINVAL ? fd : ::memfd_create("dtf", MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

[[noreturn]] void failWith(const std::string& doing, int errno_value) {
  throw Error(ErrorCode::kUnavailable, "cannot " + doing + ": " + errnoText(errno_value));
}

void* mapOrThrow(int fd, size_t bytes, int protection) {
  void* memory = ::mmap(nullptr, bytes, protection, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED)
    failWith("map " + std::to_string(bytes) + " bytes of shared memory", errno);
  return memory;
}

uint64_t drawKey() {
  uint64_t key = 0;
  while (key == 0) DTF_CHECK(::getrandom(&key, sizeof key, 0) == sizeof key);
  return key;
}

}  // namespace

SharedMemory::SharedMemory(size_t bytes) : fd_(makeMemfd()), bytes_(bytes), key_(drawKey()) {
  DTF_CHECK(bytes > 0);
  if (!fd_.valid()) failWith("make shared memory", errno);
  // Allocates all pages now: a missing page later would kill the process.
  int failed = EINTR;
  while (failed == EINTR) failed = ::posix_fallocate(fd_.get(), 0, static_cast<off_t>(bytes));
  if (failed != 0) failWith("take " + std::to_string(bytes) + " bytes of shared memory", failed);
  data_ = static_cast<std::byte*>(mapOrThrow(fd_.get(), bytes, PROT_READ | PROT_WRITE));
  std::memset(data_, 0, bytes);  // also maps its pages, before any step is timed
  if (::fcntl(fd_.get(), F_ADD_SEALS, kSeals | F_SEAL_SEAL) != 0) {
    const int refused = errno;
    ::munmap(data_, bytes_);
    failWith("seal shared memory", refused);
  }
}

SharedMemory::~SharedMemory() {
  ::munmap(data_, bytes_);
}

MappedMemory::MappedMemory(const Fd& fd, size_t bytes) : bytes_(bytes) {
  DTF_CHECK(bytes > 0);
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  struct stat status {};
  struct statfs place {};
  if (seals < 0 || (seals & kSeals) != kSeals || ::fstat(fd.get(), &status) != 0 ||
      ::fstatfs(fd.get(), &place) != 0 || place.f_type != kTmpfs)
    throw Error(ErrorCode::kBadData, "a received file is not shared memory of a fixed size");
  if (static_cast<uint64_t>(status.st_size) < bytes)
    throw Error(ErrorCode::kBadData, "shared memory of " + std::to_string(status.st_size) +
                                         " bytes came where " + std::to_string(bytes) +
                                         " were named");
  void* memory = mapOrThrow(fd.get(), bytes, PROT_READ);
  // Maps all pages now, so that a missing page is an error here and no signal later. EINVAL: Linux
  // before 5.14.
  if (::madvise(memory, bytes, MADV_POPULATE_READ) != 0 && errno != EINVAL) {
    const int refused = errno;
    ::munmap(memory, bytes);
    failWith("read " + std::to_string(bytes) + " bytes of shared memory", refused);
  }
  data_ = static_cast<const std::byte*>(memory);
}

MappedMemory::~MappedMemory() {
  ::munmap(const_cast<std::byte*>(data_), bytes_);
}

}  // namespace dtf
