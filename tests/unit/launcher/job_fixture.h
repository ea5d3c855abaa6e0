#pragma once

// Launches jobs of fake tasks in processes of their own, and checks their output, files and
// processes.

#include <gtest/gtest.h>
#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

#include "common/base/json.h"
#include "common/cluster/spec.h"
#include "launcher/exit_status.h"
#include "launcher/session.h"

namespace dtf::launcher {

class JobFixture : public ::testing::Test {
 protected:
  JobFixture();
  ~JobFixture() override;

  // A job with tasks that run these scripts (fake_task.cc), all with automatic ports.
  cluster::JobSpec job(const std::vector<std::string>& ps, const std::vector<std::string>& workers);

  // Starts dtf-launch in a process and process group of its own. Its stdout and stderr go to files.
  pid_t start(const cluster::JobSpec& job, bool json = false);
  ExitStatus await(pid_t launcher);  // fails the test and kills it after 20 s
  ExitStatus run(const cluster::JobSpec& job, bool json = false) { return await(start(job, json)); }

  void awaitFile(const std::filesystem::path& file);
  void awaitText(const std::filesystem::path& file, const std::string& wanted);
  void awaitError(const std::string& text);  // on the launcher's stderr
  // Expects that all processes of all jobs of this test, launchers included, end within `seconds`.
  void expectNoProcess(double seconds);
  size_t processes() const;  // number of this test's processes, without launchers

  std::string out() const { return text(folder_ / "out"); }
  std::string err() const { return text(folder_ / "err"); }
  std::string text(const std::filesystem::path& file) const;
  std::string log(const std::string& name) const { return text(folder_ / "run" / "logs" / name); }
  Json summary() const;

  std::filesystem::path folder_;
  LaunchOptions options_;
};

}  // namespace dtf::launcher
