// Saves and checks checkpoints of made-up values in a real process, for tests that kill it, cut its
// disk's power, or read its files with another program.
//
//   checkpoint_tool points                   the names of the failpoints
//   checkpoint_tool save FOLDER STEP PS      one checkpoint through the whole protocol; keeps 3
//   checkpoint_tool loop FOLDER              one after another, for ever; says each when committed
//   checkpoint_tool verify FOLDER STEP_MIN   exit 0: the newest is whole, of STEP_MIN or later, and
//                                            nothing visible is torn
//   checkpoint_tool bench FOLDER MIB         write speed against a raw write and fsync

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>

#include "common/base/error.h"
#include "common/base/failpoint.h"
#include "tests/unit/checkpoint/checkpoint_fixture.h"

namespace dtf::checkpoint {
namespace {

namespace fs = std::filesystem;

// Large enough that a save takes its time: 2.4 MB.
std::vector<VariableInfo> largeModel() {
  return {{"big/kernel", Shape{1000, 300}, {"Adagrad"}}, {"big/bias", Shape{300}, {}}};
}

void saveOne(CheckpointFolder& folder, uint64_t step, uint32_t ps_tasks, bool large) {
  Random random(step);
  save(realFileSystem(), folder, step, ps_tasks, random, large ? largeModel() : smallModel());
  std::printf("committed %llu\n", static_cast<unsigned long long>(step));
  std::fflush(stdout);
  folder.prune({.keep = 3, .keep_every_hours = 0});
}

CheckpointFolder openFolder(const fs::path& path) {
  return CheckpointFolder(realFileSystem(), path, Incarnation::ofNow());
}

int saveCommand(const fs::path& path, uint64_t step, uint32_t ps_tasks) {
  CheckpointFolder folder = openFolder(path);
  folder.prepare();
  folder.sweepStale();
  saveOne(folder, step, ps_tasks, /*large=*/false);
  return 0;
}

int loopCommand(const fs::path& path) {
  CheckpointFolder folder = openFolder(path);
  folder.prepare();
  for (uint64_t step = 1;; ++step) saveOne(folder, step, 2, /*large=*/true);
}

int verifyCommand(const fs::path& path, uint64_t step_min) {
  const Latest latest = openFolder(path).latestValid();
  for (const Rejected& rejected : latest.rejected)
    for (const Problem& problem : rejected.problems)
      std::printf("torn: step %llu: %s\n", static_cast<unsigned long long>(rejected.step),
                  problem.reason.c_str());
  if (!latest.found) {
    std::printf("found none\n");
    return step_min == 0 && latest.rejected.empty() ? 0 : 1;
  }
  const uint64_t step = latest.found->manifest.global_step;
  const bool large = latest.found->manifest.variables == largeModel();
  const bool right =
      allIsRight(realFileSystem(), *latest.found, large ? largeModel() : smallModel());
  std::printf("found %llu %s\n", static_cast<unsigned long long>(step),
              right ? "with the right values" : "with WRONG values");
  return right && latest.rejected.empty() && step >= step_min ? 0 : 1;
}

double secondsOf(const auto& action) {
  const auto begin = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void rawWrite(const fs::path& path, const std::vector<float>& values) {
  const auto file = realFileSystem().create(path);
  const char* at = reinterpret_cast<const char*>(values.data());
  for (size_t left = values.size() * sizeof(float); left > 0;) {
    const size_t bytes = std::min<size_t>(left, 1 << 20);
    file->write(at, bytes);
    at += bytes;
    left -= bytes;
  }
  file->sync();
  file->close();
}

// The two alternate, the best of five of each: a shared disk's speed varies more than the
// difference between them.
int benchCommand(const fs::path& path, uint64_t mib) {
  const std::vector<float> values(mib << 18, 1.5f);
  const TensorPart part{"w", Shape{static_cast<int64_t>(values.size())}, 0, values.size(),
                        values.data()};
  double raw = 1e9;
  double shard = 1e9;
  double restore = 1e9;
  std::vector<float> out(values.size());
  for (int round = 0; round < 5; ++round) {
    CheckpointFolder folder = openFolder(path / "checkpoints");
    folder.prepare();
    ShardFile written;
    const fs::path attempt = folder.path() / folder.beginAttempt(1);
    raw = std::min(raw, secondsOf([&] { rawWrite(path / "raw", values); }));
    shard = std::min(shard, secondsOf([&] {
                       written = writeShard(realFileSystem(), attempt, 0, 1, {&part, 1});
                     }));
    Manifest manifest = manifestFor({{"w", part.shape, {}}}, 1, {written});
    restore =
        std::min(restore, secondsOf([&] {
                   readPart(realFileSystem(), attempt, manifest, "w", 0, out.size(), out.data());
                 }));
    folder.abandon();
    fs::remove(path / "raw");
    fs::remove(path / "checkpoints");
  }
  const double mb = static_cast<double>(values.size()) * sizeof(float) / 1e6;
  std::printf("raw write+fsync %.0f MB/s, writeShard %.0f MB/s (%.0f %%), read back %.0f MB/s\n",
              mb / raw, mb / shard, 100 * raw / shard, mb / restore);
  return out == values ? 0 : 1;
}

int run(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  const auto number = [&](int i) { return std::strtoull(argv[i], nullptr, 10); };
  if (command == "points") {
    for (const std::string_view name : failpointNames())
      std::printf("%.*s\n", static_cast<int>(name.size()), name.data());
    return 0;
  }
  if (command == "save" && argc == 5)
    return saveCommand(argv[2], number(3), static_cast<uint32_t>(number(4)));
  if (command == "loop" && argc == 3) return loopCommand(argv[2]);
  if (command == "verify" && argc == 4) return verifyCommand(argv[2], number(3));
  if (command == "bench" && argc == 4) return benchCommand(argv[2], number(3));
  std::fprintf(stderr, "read the comment at the top of checkpoint_tool.cc\n");
  return 2;
}

}  // namespace
}  // namespace dtf::checkpoint

int main(int argc, char** argv) {
  try {
    return dtf::checkpoint::run(argc, argv);
  } catch (const dtf::Error& error) {
    std::fprintf(stderr, "error: %s\n", error.message().c_str());
    return dtf::exitCode(error.code());
  }
}
