// Prints a plan in words, for the reader of a seed that broke a promise.

#include <fmt/format.h>

#include "tests/sim/plan.h"

namespace dtf::sim {

const char* momentText(Fault::Since since) {
  using Since = Fault::Since;
  switch (since) {
    case Since::kStart:
      return "at the start";
    case Since::kFirstTrained:
      return "at the first end";
    case Since::kGoingBack:
      return "when all go back";
    case Since::kPsIsBack:
      return "when a lost ps is there again";
    case Since::kTrainsOn:
      return "when two steps were made since a loss";
    case Since::kAllJoined:
      return "when all workers have joined";
    case Since::kFollowerUpdates:
      return "when ps/1 makes a step";
    case Since::kPartDone:
      return "when a worker has done its part";
    case Since::kStopped:
      return "when it was told to stop";
    case Since::kLastSave:
      return "when the end is being saved";
    case Since::kLastSaved:
      return "when the end is saved";
    case Since::kFirstMet:
      return "when all have met at the end";
    case Since::kLastEvaluation:
      return "in the last evaluation";
    case Since::kResult:
      return "at the result";
    case Since::kFirstLeaves:
      return "when the first worker leaves";
    case Since::kFirstLeft:
      return "when the first worker has ended";
    case Since::kChiefLeaves:
      return "when the chief leaves";
    case Since::kChiefLeft:
      return "when the chief has ended";
  }
  return "";
}

std::string Fault::text() const {
  if (since != Since::kStart) {
    Fault timed = *this;
    timed.since = Since::kStart;
    return std::string(momentText(since)) + ", after " + timed.text();
  }
  const double when = toSeconds(at);
  switch (kind) {
    case Kind::kKillWorker:
      return fmt::format("{:.6f} s: kill worker/{}", when, target);
    case Kind::kKillPs:
      return fmt::format("{:.6f} s: kill ps/{}", when, target);
    case Kind::kFreezeWorker:
      return fmt::format("{:.6f} s: freeze worker/{} for {:.3f} s{}", when, target,
                         toSeconds(length), successor ? ", start another meanwhile" : "");
    case Kind::kFreezePs:
      return fmt::format("{:.6f} s: freeze ps/{} for {:.3f} s", when, target, toSeconds(length));
    case Kind::kCut:
      return fmt::format("{:.6f} s: cut a connection ({})", when, target);
    case Kind::kSilence:
      return fmt::format("{:.6f} s: silence a connection ({}) for {:.3f} s", when, target,
                         toSeconds(length));
    case Kind::kCutReplica:
      return fmt::format("{:.6f} s: cut the link of ps/{} to its replica", when, target);
    case Kind::kSilenceReplica:
      return fmt::format("{:.6f} s: silence the link of ps/{} to its replica for {:.3f} s", when,
                         target, toSeconds(length));
    case Kind::kCutWorker:
      return fmt::format("{:.6f} s: cut worker/{} off", when, target);
    case Kind::kCutPs:
      return fmt::format("{:.6f} s: cut ps/{} off", when, target);
    case Kind::kStop:
      return successor ? fmt::format("{:.6f} s: every ps is told to stop", when)
                       : fmt::format("{:.6f} s: worker/{} is told to stop the job", when, target);
    case Kind::kKillAll:
      return fmt::format("{:.6f} s: kill everything", when);
  }
  return "?";
}

std::string Plan::text() const {
  std::string text = fmt::format(
      "seed {}: {} ps, {} workers{}, {}, {} steps{}{}{}{}{}{}{}{}{}{}{}\n", seed, ps_tasks, workers,
      workers_host ? ", which host shards" : "",
      sync() ? fmt::format("sync of {}", aggregate)
             : fmt::format("{}{}", bounded() ? fmt::format("bounded by {}", staleness) : "async",
                           overlaps() ? ", overlapped" : ""),
      steps,
      epochs > 0 ? fmt::format(" in {} epochs of {} examples in batches of {}", epochs, examples,
                               batch_size)
                 : "",
      shares_memory ? ", shared memory" : "", streamsGradients() ? ", streamed" : "",
      narrows ? ", as bfloat16" : "", slow_updates ? ", slow updates" : "",
      echo_share > 0 ? ", late repeats" : "", early_echo_share > 0 ? ", early repeats" : "",
      early_timeouts ? ", early timeouts" : "", network.slow_share > 0 ? ", slow chunks" : "",
      network.split_share > 0 ? ", cut writes" : "",
      network.tiny_read_share > 0 ? ", tiny reads" : "");
  text += fmt::format("  {}{}{}", cluster::optimizerName(optimizer.kind),
                      sparse ? " of sparse variables" : "",
                      namesRows() ? ", whose rows are asked for" : "");
  if (checkpoints)
    text += fmt::format(", a checkpoint every {:.3f} s or {} steps, the newest {} kept{}{}",
                        checkpoint.every_seconds, checkpoint.every_steps, checkpoint.keep,
                        gather ? " by the chief"
                        : stay ? " by each ps"
                               : "",
                        disk_error_share > 0 ? ", on a disk that fails now and then" : "");
  if (snapshot_every_steps > 0)
    text += fmt::format(", a snapshot every {} steps", snapshot_every_steps);
  if (replicas) text += ", with replicas";
  if (launched)
    text += fmt::format(", under dtf-launch (at most {} restarts in {:g} s)", restarts_max,
                        refill_seconds);
  text += "\n";
  for (const Life& life : lives) {
    for (const Fault& fault : life.faults) text += "  " + fault.text() + "\n";
    if (&life != &lives.back())
      text += fmt::format("  then everything is started again{}\n",
                          life.power_cut ? ", after a power cut" : "");
  }
  return text;
}

}  // namespace dtf::sim
