// A disk that takes 60 ms for each sync, as busy ones do:
// LD_PRELOAD=build/tests/e2e/libslow_disk.so slows down every fsync() and fdatasync() of a process
// and of its children. Checkpoints and evaluations that are due during a save then happen
// at other steps, and a killed save has more work left.

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
