#include "launcher/commands.h"

#include <fmt/core.h>

#include "common/base/error.h"
#include "common/base/print.h"
#include "common/base/text.h"
#include "launcher/output.h"
#include "launcher/run_program.h"
#include "launcher/slurm/batch_script.h"

namespace dtf::launcher {

namespace {

constexpr Duration kSbatchWithin = std::chrono::seconds(60);  // a busy controller

// The command line of `up` with the same words.
std::vector<std::string> launchWords(const Options& options, const Origin& origin) {
  std::vector<std::string> words = {origin.own_folder / "dtf-launch", "up",
                                    std::filesystem::absolute(options.cluster_file)};
  const auto add = [&words](const char* name, const std::string& value) {
    words.emplace_back(name);
    words.push_back(value);
  };
  for (const std::string& change : options.overrides) add("--set", change);
  if (options.run_dir) add("--run-dir", *options.run_dir);
  if (options.log_level) add("--log-level", *options.log_level);
  if (options.verbosity == Verbosity::kQuiet) words.emplace_back("--quiet");
  if (options.verbosity == Verbosity::kVerbose) words.emplace_back("--verbose");
  return words;
}

}  // namespace

int submit(const cluster::JobSpec& job, const Options& options, const Origin& origin) {
  if (job.launch.via != cluster::LaunchSpec::Via::kSlurm)
    throw Error(ErrorCode::kUsage, options.cluster_file.string() +
                                       " is not for Slurm: write 'launch: {via: slurm}', or add "
                                       "--set launch.via=slurm");
  if (options.bin_dir)
    throw Error(ErrorCode::kUsage,
                "--bin-dir names a folder of this host: name the folder on the nodes with "
                "launch.binary_dir");
  const std::string script = batchScript(job, launchWords(options, origin));
  if (options.dry_run) {
    if (options.json)
      printEvent("submit", {{"script", script}});
    else
      print(script);
    return 0;
  }
  if (script.size() > kProgramInputBytesMax)
    throw Error(ErrorCode::kUsage, fmt::format("the script for sbatch would have {} bytes, of {} "
                                               "at most: move the --set values into the file",
                                               script.size(), kProgramInputBytesMax));
  const ProgramAnswer answer = runProgram({"sbatch", "--parsable"}, script, kSbatchWithin);
  if (!answer.status.success())
    throw Error(ErrorCode::kUnavailable,
                "sbatch " + answer.status.text() + "\n  it printed: " + printable(answer.err));
  // "42", or "42;cluster"
  const std::string id = printable(split(split(answer.out, '\n').front(), ';').front());
  if (id.empty())
    throw Error(ErrorCode::kUnavailable,
                "sbatch does not print the number of the job; see squeue --me");
  if (options.json)
    printEvent("submit", {{"job", job.job}, {"slurm_job", id}});
  else
    print(
        fmt::format("{}: submitted, job {} of Slurm: squeue --job={}; scancel --batch "
                    "--signal=TERM {} saves and ends it\n",
                    job.job, id, id, id));
  return 0;
}

}  // namespace dtf::launcher
