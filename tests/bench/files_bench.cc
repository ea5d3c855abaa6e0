// `dtf-bench files`: training on examples that stay in their file beside training on as many in
// memory. A set of more than data::kResidentBytesMax stays in its file; both sets are as large as
// that, one image apart. The batches are drawn from all examples, so each image is a page of its
// own. "cached" is a file in the kernel's memory, "on the disk" one that the kernel was told to
// drop: the step before should hide the time of the disk.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/base/file.h"
#include "common/data/byte_block.h"
#include "common/data/open_dataset.h"
#include "tests/bench/benchmarks.h"
#include "tests/bench/networks.h"

namespace dtf::bench {

namespace {

constexpr double kFileGoal = 0.95;
constexpr int kQuickExamples = 1000;  // all in memory: does it run at all?

// Drops the file from the kernel's memory, except pages that another process has read since. False:
// its file system keeps it there.
bool dropFromCache(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return file.valid() && ::fdatasync(file.get()) == 0 &&
         ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED) == 0;
}

class Examples {
 public:
  Examples(const Network& network, int count) : job_(jobOf(network, count, folder_)) {}

  const std::string path() const { return folder_.path() + "/x.npy"; }
  // Opens the examples anew and trains. Returns examples a second; nullopt: they could not be
  // dropped.
  std::optional<double> train(bool drop_from_cache, runtime::ComputePool& pool) const {
    const auto dataset = data::openDataset(job_.train->data.train, job_.train->data.seed, false);
    if (drop_from_cache && !dropFromCache(path())) return std::nullopt;
    const StepTime step = timeSteps(*job_.train, dataset, pool, runtime::tableRule());
    return job_.train->data.batch_size / step.seconds;
  }

 private:
  testing::TemporaryFolder folder_;
  cluster::JobSpec job_;
};

}  // namespace

std::vector<Report> benchFiles(const BenchOptions& options) {
  Report report("from a file (one thread)", {"resident ex./s", "file ex./s", "ratio", "goal"});
  runtime::ComputePool pool(1);
  for (Network& network : networks()) {
    const std::string name = network.name;
    if (name != "784-300-100-10 b100" && name != "LeNet b128") continue;
    if (options.quick) network.steps = 2;
    const auto most = static_cast<int>(data::kResidentBytesMax / (28 * 28));
    const Examples few(network, options.quick ? kQuickExamples : most);
    const Examples many(network, options.quick ? kQuickExamples : most + 1);
    std::vector<double> in_memory, cached, on_disk;
    for (int i = 0; i < options.repetitions; ++i) {
      in_memory.push_back(few.train(false, pool).value());
      if (const auto rate = many.train(true, pool)) on_disk.push_back(*rate);
      cached.push_back(many.train(false, pool).value());
    }
    const double goal = options.quick ? std::nan("") : kFileGoal;
    const double resident = median(in_memory);
    report.add(name + ", cached", {resident, median(cached), median(cached) / resident, goal});
    if (on_disk.empty())
      fmt::print(stderr, "{}, on the disk: left out, the kernel keeps {} in its memory\n", name,
                 many.path());
    else
      report.add(name + ", on the disk",
                 {resident, median(on_disk), median(on_disk) / resident, goal});
  }
  return {report};
}

}  // namespace dtf::bench
