#pragma once

// The verbs of dtf-launch. Each returns the exit code of the process.
// Errors: dtf::Error, for main() to print.

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "common/cluster/spec.h"
#include "common/net/credentials.h"
#include "common/train/data_check.h"
#include "common/train/job_check.h"
#include "launcher/options.h"

namespace dtf::launcher {

// What dtf-launch knows beside the job and its command line.
struct Origin {
  std::filesystem::path own_folder;  // where dtf-launch itself is
  // What the job was read from: absolute path -> text.
  std::map<std::filesystem::path, std::string> files;
  net::Credentials credentials{};  // to ask running tasks with
  // Of a job with `placement: auto`. Called once the run directory is this launch's: keeps the
  // choice there, and returns a warning to show, or an empty text. Empty: there is no choice.
  std::function<std::string()> keep_placement{};
  double exchange_seconds = 0;  // predicted for the choice; 0: no prediction
};

// Runs the job, or with --dry-run prints what would run.
int up(const cluster::JobSpec& job, const Options& options, const Origin& origin);

// Writes a job's file for the data of --data, and prints what it found in them.
// Blocks: on the disk, for as long as reading the data takes.
// Errors: kUsage; those of profileData() (init/job_file.h) and checkedJob() (init/written_job.h);
// kCannotWrite for a file that is there, without --force.
int initJob(const Options& options);

// Has Slurm run the job, and prints its number there; with --dry-run prints the script.
// Blocks: on sbatch.
// Errors: kUsage: the file has another launch.via; kUnavailable with the words of sbatch.
int submit(const cluster::JobSpec& job, const Options& options, const Origin& origin);

// Starts the tasks of the job's cluster without the job: they serve clients until they are told to
// end. With --dry-run as up().
int serve(const cluster::JobSpec& job, const Options& options, const Origin& origin);

// Makes, renews or lists the keys of a job's tasks (common/net/key_folder.h).
// Errors: kUsage; those of net::KeyFolder and of the cluster file.
int keys(const Options& options);

// The job was checked without a mistake: says so, how large it is, and lists the tasks.
int check(const cluster::JobSpec& job, const train::JobSize& size, const train::DataCounts& counts,
          const Options& options);

// Measures every pair of the job's hosts, by their agents where the tasks run
// there, and prints what it found,
// and what a person should look at.
// Blocks: about a second for each pair and address, pairs of different hosts at the same time; each
// for NetworkCheck::kAnswerWithin at most.
// Errors: kUnavailable, kPermission or kBadConfig for a host that can't be used; kUnavailable,
// after the answer, when some don't reach each other.
int checkNetwork(const cluster::JobSpec& job, const Options& options, const Origin& origin);

// How many threads each worker computes with, on hosts with as many cores as this one.
std::vector<int> threadsOf(const cluster::ClusterSpec& cluster);
// "each worker computes on 1, as this host has 2 cores"
std::string threadsText(const cluster::ClusterSpec& cluster);

// What each worker computes on: ["cpu:0", "cpu:1"].
std::vector<std::vector<std::string>> devicesOf(const cluster::ClusterSpec& cluster);
// "2 towers on cpu:0, cpu:1, each of 50 examples with 1 thread"; empty for a worker with one
// device.
std::string towersText(const cluster::JobSpec& job, uint32_t worker);

// Prints the model layer by layer, and where its variables lie. The job was checked.
int explain(const cluster::JobSpec& job, const Options& options);

// Runs a graph that was written op by op on the job's tasks, which serve; with --dry-run prints
// where each op would run.
// Errors: kBadConfig in compiler form; kUnavailable that names a task; those of the steps.
int graph(const cluster::JobSpec& job, const Options& options, const net::Credentials& credentials);

// Prints the runs in the folders options.names, without names all runs that this user has
// (run_list.h), newest first.
// Errors: those of listRuns().
int runs(const Options& options);

// Prints the settings in which the runs options.names differ, and their results side by side.
// Errors: those of runNamed(); kUsage for a run that is named twice.
int compare(const Options& options);

// The following find the run as find_run.h says, with its errors. `credentials`: to ask its tasks
// with.

constexpr int kNotRunning = 3;  // as `systemctl status` answers

// How far the job is and what each of its tasks answers, or how its last run ended. 0: it runs;
// kNotRunning: it doesn't.
// Blocks: on tasks that don't answer, a second at most.
int status(const cluster::JobSpec& job, const Options& options,
           const net::Credentials& credentials);

// Shows what dtf-launch would on this terminal, until the job ends; returns its exit code.
// Errors: kUnavailable when it doesn't run.
int attach(const cluster::JobSpec& job, const Options& options,
           const net::Credentials& credentials);

// Writes the newest log of each task, or of those named, to stdout, merged by time; with --follow
// until the job ends.
// Errors: kUsage for a name that is no task; kBadData when there is no log.
int logs(const cluster::JobSpec& job, const Options& options);

// Asks who runs the job to end it, and waits until it has. 0: it was saved, or done; kNotRunning:
// nothing runs; else the job's exit code: it ended unsaved.
// Blocks: stopLimit() at most (monitor_limits.h).
// Errors: kDeadline; kPermission for a job of another user.
int stop(const cluster::JobSpec& job, const Options& options, const net::Credentials& credentials);

// The following use what the run has saved, see trained_model.h, with its errors. They start
// nothing.

// Prints how good the model is on the job's evaluation data, with --report also by class.
// Errors: kBadConfig where the job names none, and for --report with a model of targets.
int eval(const cluster::JobSpec& job, const Options& options);

// Prints, or writes to --output, what the model says of the examples of --input, or of the job's
// evaluation data.
// Errors: kUsage for an ending of --output that is no format; kBadConfig where there are no
// examples, or of another shape than the model's; kBadData for a file that is damaged;
// kCannotWrite.
int predict(const cluster::JobSpec& job, const Options& options);

// Writes the model to --to.
// Errors: kUsage for an ending that is no format; kBadConfig at the layer that the format has no
// words for; kCannotWrite.
int exportModel(const cluster::JobSpec& job, const Options& options);

// Saves the weights of --from as the checkpoint of step 0 in the job's run directory.
// Errors: those of readWeights(), applyNames() and saveImported(); kUnavailable when the job runs.
int importModel(const cluster::JobSpec& job, const Options& options);

// "dtf-launch logs job.yaml", of the file and the run directory that a verb was asked about.
std::string logsCommand(const Options& options);

}  // namespace dtf::launcher
