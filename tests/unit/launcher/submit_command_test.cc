#include <gmock/gmock.h>

#include "tests/unit/launcher/verb_fixture.h"

namespace dtf::launcher {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// tests/hosts/slurm_test.py tests that Slurm accepts the script.
class SubmitCommand : public VerbTest {
 protected:
  SubmitCommand() {
    job_.launch.via = cluster::LaunchSpec::Via::kSlurm;
    options_.dry_run = true;
  }
  std::string script() {
    return printed([this] { return submit(job_, options_, {"/opt/dtf", {}}); });
  }
};

TEST_F(SubmitCommand, TheScriptRunsTheLaunchThatWasAskedFor) {
  options_.overrides = {"train.steps=7"};
  options_.run_dir = "/shared/run";
  options_.verbosity = Verbosity::kQuiet;
  const std::string text = script();
  EXPECT_EQ(code_, 0);
  EXPECT_THAT(text, StartsWith("#!"));
  EXPECT_THAT(text,
              AllOf(HasSubstr("tiny"), HasSubstr("/opt/dtf/dtf-launch up "),
                    HasSubstr(options_.cluster_file.string()), HasSubstr("--set train.steps=7"),
                    HasSubstr("--run-dir /shared/run"), HasSubstr("--quiet")));
}

TEST_F(SubmitCommand, WhatWasNotAskedForIsNotSaid) {
  EXPECT_THAT(script(), AllOf(Not(HasSubstr("--set")), Not(HasSubstr("--run-dir")),
                              Not(HasSubstr("--quiet")), Not(HasSubstr("--verbose"))));
}

TEST_F(SubmitCommand, AJobThatIsNotForSlurmIsRefused) {
  const auto refused = [this] {
    return refusal(ErrorCode::kUsage, [this] { return submit(job_, options_, {}); });
  };
  options_.bin_dir = "/usr/bin";
  EXPECT_THAT(refused(), HasSubstr("--bin-dir names a folder of this host"));
  job_.launch.via = cluster::LaunchSpec::Via::kSsh;
  EXPECT_THAT(refused(), HasSubstr("is not for Slurm: write 'launch: {via: slurm}'"));
}

}  // namespace
}  // namespace dtf::launcher
