// Watches a job of dtf-launch from beside it: the norm of each variable, as of one step.
// Usage: watch_job CLUSTER.yaml [SECONDS [TIMES]]    SECONDS between two looks; 1

#include <dtf/job_reader.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <thread>

int main(int argc, char** argv) try {
  if (argc < 2 || argc > 4)
    throw dtf::Error(DTF_USAGE, "usage: watch_job CLUSTER.yaml [SECONDS [TIMES]]");
  const double seconds = argc > 2 ? std::atof(argv[2]) : 1;
  const long times = argc > 3 ? std::atol(argv[3]) : -1;
  dtf::JobReader job(argv[1]);
  for (long i = 0; i != times; ++i) {
    if (i > 0) std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    std::printf("step %llu:", static_cast<unsigned long long>(job.take()));
    for (const std::string& variable : job.variables()) {
      double squares = 0;
      const dtf::Tensor value = job.read(variable);
      for (const float element : value.as<float>()) squares += double{element} * element;
      std::printf(" %s %.4f", variable.c_str(), std::sqrt(squares));
    }
    std::printf("\n");
    std::fflush(stdout);
  }
} catch (const dtf::Error& error) {
  std::fprintf(stderr, "watch_job: error: %s\n", error.what());
  return error.code();
}
