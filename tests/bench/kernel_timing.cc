#include "tests/bench/kernel_timing.h"

#include <time.h>

#include <cstring>
#include <utility>
#include <vector>

#include "common/base/random.h"

namespace dtf::bench {

namespace {

double cpuSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

}  // namespace

double secondsPerCall(const std::function<void()>& work, const BenchOptions& options) {
  work();
  const double least = options.quick ? 0 : 0.01;
  std::vector<double> seconds;
  for (int i = 0; i < options.repetitions; ++i) {
    const double start = cpuSeconds();
    int calls = 0;
    do {
      work();
      ++calls;
    } while (cpuSeconds() - start < least);
    seconds.push_back((cpuSeconds() - start) / calls);
  }
  return median(std::move(seconds));
}

Buffer randomFloats(int64_t count) {
  Buffer buffer(static_cast<size_t>(count) * sizeof(float));
  Random random(static_cast<uint64_t>(count));
  for (int64_t i = 0; i < count; ++i) buffer.as<float>()[i] = random.uniform(-1, 1);
  return buffer;
}

double copyRate(int64_t floats, const BenchOptions& options) {
  Buffer from = randomFloats(floats), to(from.bytes());
  const double seconds = secondsPerCall(
      [&] {
        std::memcpy(to.data(), from.data(), from.bytes());
        from.as<float>()[0] = to.as<float>()[floats / 2];  // the copy is used: it can't be left out
      },
      options);
  return 2.0 * static_cast<double>(from.bytes()) / seconds;
}

}  // namespace dtf::bench
