// dtf-bench: measures dtf against the limits of the machine it runs on, side by side in one run.

#include <fmt/core.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/base/json.h"
#include "tests/bench/benchmarks.h"
#include "tests/bench/machine.h"

namespace dtf::bench {
namespace {

namespace po = boost::program_options;

struct Benchmark {
  const char* name;
  const char* what;
  std::vector<Report> (*run)(const BenchOptions& options);
};

constexpr Benchmark kBenchmarks[] = {
    {"rpc", "pings, pipelined calls, pull and push of 1 to 256 MiB beside a raw socket", benchRpc},
    {"softmax", "MNIST softmax regression by dtf-launch, 2 ps + 2 workers, async and sync",
     benchSoftmax},
    {"idle", "CPU that psd and workerd use while they wait", benchIdle},
    {"null-step",
     "a step that computes nothing: scalar, 100 MB, 1 GB; beside a raw socket; 1 to 8 workers",
     benchNullStep},
    {"collectives",
     "the exchange of a sync step without ps, 4 KiB to 256 MiB, beside its limit and memcpy",
     benchCollectives},
    {"refill", "a shard that comes back from its replica on another ps, beside a raw socket",
     benchRefill},
    {"durability", "whole jobs with snapshots and with replicas, beside one with neither",
     benchDurability},
    {"optimizers", "updates of 64 MiB of parameters beside memcpy, with each instruction set",
     benchOptimizers},
    {"rows", "updates of a few rows of a table of 100 MB, beside memcpy of the table", benchRows},
    {"models", "training steps of whole networks, on one thread and on more, beside the peak",
     benchModels},
    {"files", "training on examples in a file, cached or not, beside as many in memory",
     benchFiles},
    {"neighbour", "training on all cores beside a process that keeps one busy", benchNeighbour},
    {"kernels", "each kernel beside the multiply-add peak or memcpy, with each instruction set",
     benchKernels},
    {"graph",
     "the graph engine: a large graph in parts, a session's step, transfers between devices",
     benchGraph},
    {"edges", "a tensor of 1 MiB to 3 GiB that a ps sends a worker in a step, beside a raw socket",
     benchEdges},
    {"tls", "the same of 1 MiB to 1 GiB with keys, beside one without and a raw socket", benchTls},
    {"checksum", "bulk messages of 1 to 64 MiB and small calls with checksums, beside ones without",
     benchChecksum},
    {"codecs", "encoding and decoding gradients and changes of parameters, beside memcpy",
     benchCodecs},
    {"towers", "training on two devices of a worker beside one with as many threads", benchTowers},
    {"overlap",
     "async training whose worker computes while a gradient travels, beside one that waits",
     benchOverlap},
    {"stragglers",
     "what sync, bounded and async training make of batches that now and then take longer",
     benchStragglers},
    {"stream", "sync training whose gradients leave while they are computed, beside whole ones",
     benchStream},
    {"transfer",
     "training whose values travel as bfloat16, int8, or the largest alone, beside float32",
     benchTransfer},
    {"memory", "jobs whose workers and ps share memory, beside sockets, and beside one process",
     benchMemory},
    {"gpu", "training steps of whole networks on gpu:0, in float32, TF32 and bfloat16", benchGpu},
};

const Benchmark& findBenchmark(const std::string& name) {
  for (const Benchmark& benchmark : kBenchmarks)
    if (name == benchmark.name) return benchmark;
  throw Error(ErrorCode::kUsage, "there is no benchmark '" + name + "'; --help lists them");
}

void printHelp(const po::options_description& options) {
  std::cout << "usage: dtf-bench [OPTION...] TABLE...\n\ntables:\n";
  for (const Benchmark& benchmark : kBenchmarks)
    std::cout << fmt::format("  {:<10} {}\n", benchmark.name, benchmark.what);
  std::cout << '\n'
            << options << "\nexamples:\n"
            << "  dtf-bench rpc                      # a table on stdout\n"
            << "  dtf-bench --json rpc > rpc.json    # the same numbers for a script\n"
            << "  dtf-bench --repetitions 15 rpc     # for a noisy machine\n"
            << "  dtf-bench --check optimizers       # exit code 1 when a goal is missed\n"
            << "  dtf-bench --only 'scalar, 1 worker, 1 ps' null-step\n";
}

// The error names the table: several may have been requested.
std::vector<Report> reportsOf(const Benchmark& benchmark, const BenchOptions& options) {
  try {
    return benchmark.run(options);
  } catch (const Error& error) {
    throw Error(error.code(), std::string(benchmark.name) + ": " + error.message());
  } catch (const std::exception& error) {
    throw Error(ErrorCode::kInternal, std::string(benchmark.name) + ": " + error.what());
  }
}

int run(int argc, char** argv) {
  BenchOptions bench;
  po::options_description visible("options");
  visible.add_options()("help,h", "show this")("json", "print JSON instead of tables")(
      "repetitions", po::value(&bench.repetitions)->default_value(bench.repetitions),
      "measurements per number, of which the median counts")(
      "check", "ends with 1 when a row whose table has a goal misses it, and names it")(
      "quick", po::bool_switch(&bench.quick), "small sizes only: does it run at all?")(
      "full", po::bool_switch(&bench.full), "null-step: every row that fits into memory")(
      "only", po::value(&bench.only),
      "null-step: rows, rpc: tables whose name has this in it; optimizers: this instruction set; "
      "kernels, models, edges, tls, collectives, overlap, stream, transfer, memory: layers, "
      "networks or rows "
      "whose name "
      "begins "
      "with this")("threads", po::value(&bench.threads)->default_value(bench.threads),
                   "models: measures as many threads beside one, in turns")(
      "timed", po::bool_switch(&bench.timed),
      "models: measures 'kernels: timed' beside the table, in turns");
  po::options_description all;
  all.add(visible).add_options()("table", po::value<std::vector<std::string>>());
  po::positional_options_description positional;
  positional.add("table", -1);
  po::variables_map given;
  po::store(po::command_line_parser(argc, argv).options(all).positional(positional).run(), given);
  po::notify(given);
  if (given.count("help")) {
    printHelp(visible);
    return 0;
  }
  if (bench.threads < 1) throw Error(ErrorCode::kUsage, "--threads must be at least 1");
  if (!given.count("table"))
    throw Error(ErrorCode::kUsage, "which table? 'dtf-bench --help' lists them");
  if (bench.repetitions < 1) throw Error(ErrorCode::kUsage, "--repetitions must be at least 1");
  const bool as_json = given.count("json") > 0;
  auto results = Json::object();
  std::vector<std::string> missed;
  for (const auto& name : given["table"].as<std::vector<std::string>>()) {
    for (const Report& report : reportsOf(findBenchmark(name), bench)) {
      if (report.empty()) continue;  // none of its rows is one of --only
      std::ranges::move(report.below("ratio", "goal"), std::back_inserter(missed));
      if (as_json) {
        Json table = report.json();
        table["machine"] = machine();
        results[name].push_back(std::move(table));
      } else {
        std::cout << machine() << '\n' << report.table() << std::endl;
      }
    }
  }
  if (as_json) std::cout << results.dump(2) << std::endl;
  if (!given.count("check")) return 0;
  for (const std::string& row : missed) std::cerr << "goal missed: " << row << '\n';
  return missed.empty() ? 0 : 1;
}

}  // namespace
}  // namespace dtf::bench

int main(int argc, char** argv) {
  try {
    return dtf::bench::run(argc, argv);
  } catch (const dtf::Error& error) {
    std::cerr << "dtf-bench: " << error.message() << '\n';
    return dtf::exitCode(error.code());
  } catch (const boost::program_options::error& error) {
    std::cerr << "dtf-bench: " << error.what() << "; see dtf-bench --help\n";
    return dtf::exitCode(dtf::ErrorCode::kUsage);
  } catch (const std::exception& error) {
    std::cerr << "dtf-bench: " << error.what() << '\n';
    return dtf::exitCode(dtf::ErrorCode::kInternal);
  }
}
