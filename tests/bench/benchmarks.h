#pragma once

// The benchmarks that main.cc offers; one function each, returning one or more tables.

#include <string>
#include <vector>

#include "tests/bench/report.h"

namespace dtf::bench {

struct BenchOptions {
  int repetitions = 7;  // per number; the median is reported
  bool quick = false;   // small sizes only: does it run at all?
  bool full = false;    // null-step: every row that fits into memory
  std::string only;     // see --help
  int threads = 1;      // models: these besides one
  bool timed = false;   // models: also with `kernels: timed`
};

std::vector<Report> benchRpc(const BenchOptions& options);
std::vector<Report> benchSoftmax(const BenchOptions& options);
std::vector<Report> benchIdle(const BenchOptions& options);
std::vector<Report> benchNullStep(const BenchOptions& options);
std::vector<Report> benchCollectives(const BenchOptions& options);
std::vector<Report> benchModels(const BenchOptions& options);
std::vector<Report> benchFiles(const BenchOptions& options);
std::vector<Report> benchNeighbour(const BenchOptions& options);
std::vector<Report> benchRefill(const BenchOptions& options);
std::vector<Report> benchDurability(const BenchOptions& options);
std::vector<Report> benchOptimizers(const BenchOptions& options);
std::vector<Report> benchRows(const BenchOptions& options);
std::vector<Report> benchKernels(const BenchOptions& options);
std::vector<Report> benchEdges(const BenchOptions& options);
std::vector<Report> benchChecksum(const BenchOptions& options);
std::vector<Report> benchCodecs(const BenchOptions& options);
std::vector<Report> benchTls(const BenchOptions& options);
std::vector<Report> benchGraph(const BenchOptions& options);
std::vector<Report> benchTowers(const BenchOptions& options);
std::vector<Report> benchOverlap(const BenchOptions& options);
std::vector<Report> benchStragglers(const BenchOptions& options);
std::vector<Report> benchStream(const BenchOptions& options);
std::vector<Report> benchTransfer(const BenchOptions& options);
std::vector<Report> benchMemory(const BenchOptions& options);
std::vector<Report> benchGpu(const BenchOptions& options);

}  // namespace dtf::bench
