#include "launcher/slurm/batch_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "launcher/run_program.h"
#include "tests/support/temporary_files.h"

namespace dtf::launcher {

using dtf::testing::TemporaryFiles;
using ::testing::HasSubstr;

TEST(BatchScript, AsksForWhatTheFileSaysAndRunsOneCommand) {
  cluster::JobSpec job;
  job.job = "digits";
  job.timeouts.stop_seconds = 45.5;
  job.launch.slurm = {.nodes = 3, .time = "2:00:00", .options = {"--partition=gpu", "--exclusive"}};
  EXPECT_EQ(batchScript(job, {"/opt/dtf/dtf-launch", "up", "/my home/c.yaml"}),
            "#!/bin/bash\n"
            "#SBATCH --job-name=digits\n"
            "#SBATCH --nodes=3\n"
            "#SBATCH --ntasks-per-node=1\n"
            "#SBATCH --time=2:00:00\n"
            "#SBATCH --signal=B:TERM@76\n"
            "#SBATCH --requeue\n"
            "#SBATCH --open-mode=append\n"
            "#SBATCH --partition=gpu\n"
            "#SBATCH --exclusive\n"
            "exec /opt/dtf/dtf-launch up '/my home/c.yaml'\n");
}

namespace {

// Runs a script with launch.requeue in bash. A program replaces dtf-launch: it sends the script
// each of `signals` until the signal is passed on, and ends with `code`. (bash may drop a signal
// that arrives while it handles another.) Another replaces scontrol: it prints its arguments, and
// the time of preemption.
ProgramAnswer runRequeued(const std::string& signals, const std::string& code,
                          const std::string& preempted = "None") {
  const TemporaryFiles files;
  files.write(
      "scontrol",
      "#!/bin/sh\n[ \"$1\" != show ] || exec echo \"  PreemptEligibleTime=2026-11-26T16:36:22 "
      "PreemptTime=" +
          preempted + "\"\necho \"scontrol $*\"\n");
  files.write("launch", R"(#!/usr/bin/env python3
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
for name in sys.argv[1].split():
    os.kill(os.getppid(), signal.Signals['SIG' + name])
    while signal.sigtimedwait({signal.SIGTERM}, 1) is None:
        os.kill(os.getppid(), signal.Signals['SIG' + name])
sys.exit(int(sys.argv[2]))
)");
  for (const char* program : {"scontrol", "launch"})
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  const std::string here = std::filesystem::current_path();
  cluster::JobSpec job;
  job.launch.slurm.requeue = true;
  files.write("script", batchScript(job, {here + "/launch", signals, code}));
  constexpr std::chrono::seconds kSoon{20};
  return runProgram(
      {"env", "PATH=" + here + ":/usr/bin:/bin", "SLURM_JOB_ID=42", "bash", here + "/script"}, "",
      kSoon);
}

}  // namespace

TEST(BatchScript, ForAnotherTurnItIsToldBeforeTheLimit) {
  cluster::JobSpec job;
  job.launch.slurm.requeue = true;
  const std::string script = batchScript(job, {"dtf-launch"});
  EXPECT_THAT(script, HasSubstr("#SBATCH --nodes=1\n"));
  EXPECT_THAT(script, HasSubstr("#SBATCH --signal=B:USR1@60\n"));
}

TEST(BatchScript, AfterTheJobHasSavedItAsksForAnotherTurn) {
  for (const char* signals : {"USR1", "USR1 USR1", "TERM USR1"}) {
    const ProgramAnswer answer = runRequeued(signals, "0");
    EXPECT_EQ(answer.out, "scontrol requeue 42\n") << signals << ": " << answer.err;
    EXPECT_EQ(answer.status.code, 0) << signals;
  }
}

TEST(BatchScript, APreemptedJobThatHasSavedAsksForAnotherTurnUnlessItWasCancelled) {
  const std::string preempted = "2026-11-26T16:36:25";
  EXPECT_EQ(runRequeued("", "0", preempted).out, "scontrol requeue 42\n");
  EXPECT_EQ(runRequeued("USR1", "0", preempted).out, "scontrol requeue 42\n");
  EXPECT_EQ(runRequeued("TERM", "0", preempted).out, "");
  const ProgramAnswer lost = runRequeued("", "73", preempted);
  EXPECT_EQ(lost.out, "");
  EXPECT_EQ(lost.status.code, 73);
}

TEST(BatchScript, OneThatIsDoneCancelledOrNotSavedHasNoOtherTurn) {
  struct Case {
    const char* signals;
    const char* code;
  };
  for (const Case& each :
       {Case{"", "0"}, {"", "69"}, {"TERM", "0"}, {"USR1 TERM", "0"}, {"USR1", "73"}}) {
    const ProgramAnswer answer = runRequeued(each.signals, each.code);
    EXPECT_EQ(answer.out, "") << each.signals;
    EXPECT_EQ(std::to_string(answer.status.code), each.code) << each.signals << ": " << answer.err;
  }
}

}  // namespace dtf::launcher
