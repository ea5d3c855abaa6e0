// A disk that takes 60 ms to make anything durable, as busy ones do:
// LD_PRELOAD=build/tests/e2e/libslow_disk.so makes every fsync() and fdatasync() of a process and
// of its children so slow. What is due while a save is at work happens at other steps then, and who
// is killed in a save has more of it left.

#include <dlfcn.h>
#include <unistd.h>

namespace {

constexpr useconds_t kMicroseconds = 60'000;

int slowly(const char* name, int fd) {
  using Sync = int (*)(int);
  const auto sync = reinterpret_cast<Sync>(::dlsym(RTLD_NEXT, name));
  ::usleep(kMicroseconds);
  return sync(fd);
}

}  // namespace

extern "C" int fsync(int fd) {
  return slowly("fsync", fd);
}

extern "C" int fdatasync(int fd) {
  return slowly("fdatasync", fd);
}
