#include "common/base/joined_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <ctime>
#include <thread>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/text.h"

namespace dtf {

namespace {

constexpr size_t kPage = 4096;
// The byte whose lock guards joining and leaving; the seats are the bytes before it.
constexpr off_t kDoor = off_t{1} << 40;
constexpr Duration kTryEvery = std::chrono::milliseconds(10);

// Locks of an open file, not of a process: two objects of one process exclude each other, too.
struct flock lockOf(short type, off_t first, off_t count) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = first;
  lock.l_len = count;
  return lock;
}

[[noreturn]] void failJoin(const std::string& doing, int errno_value) {
  throw Error(ErrorCode::kUnavailable, "cannot " + doing + ": " + errnoText(errno_value));
}

// Returns false if another process has the lock.
bool tryLock(int fd, off_t at, const std::filesystem::path& file) {
  struct flock lock = lockOf(F_WRLCK, at, 1);
  if (::fcntl(fd, F_OFD_SETLK, &lock) == 0) return true;
  if (errno != EAGAIN && errno != EACCES) failJoin("lock " + file.string(), errno);
  return false;
}

// Returns false if the kernel refuses it.
bool awaitLock(int fd, off_t at) {
  struct flock lock = lockOf(F_WRLCK, at, 1);
  int result = -1;
  do result = ::fcntl(fd, F_OFD_SETLKW, &lock);
  while (result != 0 && errno == EINTR);
  return result == 0;
}

void unlock(int fd, off_t at) {
  struct flock lock = lockOf(F_UNLCK, at, 1);
  DTF_CHECK(::fcntl(fd, F_OFD_SETLK, &lock) == 0);
}

void requireOwn(const std::filesystem::path& path, const struct stat& info, bool is_kind) {
  if (is_kind && info.st_uid == ::geteuid() && (info.st_mode & 077) == 0) return;
  throw Error(ErrorCode::kPermission,
              path.string() +
                  " is not this user's alone, so another user could change the gradients "
                  "in it: remove it");
}

// The first page. It is zeroed before the first process joins.
struct FirstPage {
  std::atomic<uint32_t> bell;
  std::atomic<uint64_t> identity;
};
static_assert(std::atomic<uint32_t>::is_always_lock_free);
static_assert(std::atomic<uint64_t>::is_always_lock_free);
static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t) && sizeof(FirstPage) <= kPage);

FirstPage& firstPage(std::byte* mapped) {
  return *reinterpret_cast<FirstPage*>(mapped);
}

}  // namespace

JoinedMemory::JoinedMemory(const Options& options)
    : options_(options), bytes_(kPage + options.bytes) {
  DTF_CHECK(options.bytes > 0 && options.seat < options.seats && options.patience > Duration{0});
  DTF_CHECK(options.file.is_absolute());
  const auto begin = std::chrono::steady_clock::now();
  for (Attempt last = tryJoin(); last != Attempt::kJoined; last = tryJoin()) {
    const Duration waited = std::chrono::steady_clock::now() - begin;
    if (options_.on_waiting) options_.on_waiting(reasonOf(last), waited);
    if (waited >= options_.patience)
      throw Error(last == Attempt::kOtherJob ? ErrorCode::kBadConfig : ErrorCode::kDeadline,
                  fmt::format("waited {:.0f} s for {}: end it", toSeconds(options_.patience),
                              reasonOf(last)));
    std::this_thread::sleep_for(kTryEvery);
  }
}

// Of two that leave together, the second finds itself alone. The file of the name may be a later
// one than this memory's, if somebody has removed this one.
JoinedMemory::~JoinedMemory() {
  ::munmap(mapped_, bytes_);
  const bool is_alone = awaitLock(fd_.get(), kDoor) && !isAnyTaken(0, options_.seat) &&
                        !isAnyTaken(options_.seat + 1, options_.seats - options_.seat - 1);
  struct stat info {};
  if (!is_alone || ::fstat(fd_.get(), &info) != 0 || info.st_nlink == 0) return;
  ::unlink(options_.file.c_str());
  ::rmdir(options_.file.parent_path().c_str());  // fails if it has other files
}

std::byte* JoinedMemory::data() const {
  return mapped_ + kPage;
}

Fd JoinedMemory::openFile() const {
  const std::filesystem::path folder = options_.file.parent_path();
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
    failJoin("make the folder " + folder.string(), errno);
  struct stat info {};
  if (::lstat(folder.c_str(), &info) == 0) requireOwn(folder, info, S_ISDIR(info.st_mode));
  return Fd(::open(options_.file.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
}

std::string JoinedMemory::reasonOf(Attempt attempt) const {
  const std::string file = options_.file.string();
  switch (attempt) {
    case Attempt::kOtherJob:
      return fmt::format(
          "the processes of another job, or of other files of this one, that have "
          "joined {}",
          file);
    case Attempt::kSeatTaken:
      return fmt::format("the earlier process with seat {} of {}", options_.seat, file);
    default:
      return fmt::format("the process that keeps {} locked", file);
  }
}

// Keeps no lock unless it has joined: a process that waits for its seat must not keep out others.
JoinedMemory::Attempt JoinedMemory::tryJoin() {
  fd_ = openFile();
  if (!fd_.valid()) {
    if (errno == ENOENT) return Attempt::kRemoved;  // the folder was removed meanwhile
    failJoin("open " + options_.file.string(), errno);
  }
  const Attempt result = tryLock(fd_.get(), kDoor, options_.file) ? joinAtDoor() : Attempt::kLocked;
  if (result == Attempt::kJoined)
    unlock(fd_.get(), kDoor);
  else
    fd_ = Fd();
  return result;
}

JoinedMemory::Attempt JoinedMemory::joinAtDoor() {
  struct stat info {};
  if (::fstat(fd_.get(), &info) != 0) failJoin("look at " + options_.file.string(), errno);
  requireOwn(options_.file, info, S_ISREG(info.st_mode));
  if (info.st_nlink == 0) return Attempt::kRemoved;  // by the last process
  const bool is_first = !isAnyTaken(0, options_.seats);
  if (is_first)
    prepare();
  else if (static_cast<uint64_t>(info.st_size) != bytes_)
    return Attempt::kOtherJob;
  if (!tryLock(fd_.get(), static_cast<off_t>(options_.seat), options_.file))
    return Attempt::kSeatTaken;
  map();
  if (is_first) firstPage(mapped_).identity.store(options_.identity);
  if (firstPage(mapped_).identity.load() == options_.identity) return Attempt::kJoined;
  ::munmap(std::exchange(mapped_, nullptr), bytes_);
  return Attempt::kOtherJob;
}

void JoinedMemory::map() {
  void* const memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
  if (memory == MAP_FAILED) failJoin("map " + options_.file.string(), errno);
  mapped_ = static_cast<std::byte*>(memory);
}

// Zeroes the memory and allocates its pages: a missing page later would kill the process.
void JoinedMemory::prepare() {
  if (::ftruncate(fd_.get(), 0) != 0) failJoin("empty " + options_.file.string(), errno);
  int failed = EINTR;
  while (failed == EINTR) failed = ::posix_fallocate(fd_.get(), 0, static_cast<off_t>(bytes_));
  if (failed == 0) return;
  ::unlink(options_.file.c_str());  // gives back what it has got
  failJoin(
      fmt::format("take {} of shared memory for {}", bytesText(bytes_), options_.file.string()),
      failed);
}

bool JoinedMemory::isAnyTaken(uint32_t first, uint32_t count) const {
  if (count == 0) return false;
  struct flock lock = lockOf(F_WRLCK, static_cast<off_t>(first), static_cast<off_t>(count));
  DTF_CHECK(::fcntl(fd_.get(), F_OFD_GETLK, &lock) == 0);
  return lock.l_type != F_UNLCK;
}

bool JoinedMemory::isTaken(uint32_t seat) const {
  DTF_CHECK(seat < options_.seats);
  return seat == options_.seat || isAnyTaken(seat, 1);
}

uint32_t JoinedMemory::rings() const {
  return firstPage(mapped_).bell.load(std::memory_order_acquire);
}

void JoinedMemory::ring() {
  firstPage(mapped_).bell.fetch_add(1, std::memory_order_release);
  ::syscall(SYS_futex, mapped_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void JoinedMemory::awaitRing(uint32_t seen, Duration at_most) const {
  DTF_CHECK(at_most > Duration{0});
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(at_most);
  timespec wait{.tv_sec = seconds.count(), .tv_nsec = (at_most - seconds).count()};
  ::syscall(SYS_futex, mapped_, FUTEX_WAIT, seen, &wait, nullptr, 0);
}

}  // namespace dtf
