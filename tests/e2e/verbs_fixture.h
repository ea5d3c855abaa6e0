#pragma once

// An endless training job, and the verbs of dtf-launch that query it.

#include <signal.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "tests/e2e/cluster_fixture.h"

namespace dtf::testing {

using std::chrono::seconds;

class VerbsTest : public ClusterTest {
 protected:
  VerbsTest() : file_(writeCluster(options())) {}

  static ClusterOptions options() {
    ClusterOptions options;
    options.steps = 100'000'000;
    options.train_more = "  checkpoint: {every_seconds: 600}\n";
    return options;
  }

  ProcessResult verb(const std::string& name, std::vector<std::string> more = {}) {
    std::vector<std::string> argv = {binary("dtf-launch"), name, file_};
    argv.insert(argv.end(), more.begin(), more.end());
    return runProcess(std::move(argv), seconds(60), {}, folder_.path());
  }

  // Tasks by hand, with fixed ports, and a run_dir relative to their working folder.
  std::vector<Process> startBelowThisFolder() {
    ClusterOptions by_hand = options();
    by_hand.ports = freePorts(4);
    writeCluster(by_hand);
    std::string text = folder_.read("job.yaml");
    const std::string absolute = "run_dir: " + folder_.path() + "/";
    text.replace(text.find(absolute), absolute.size(), "run_dir: ");
    folder_.write("job.yaml", text);
    return startFour(file_);
  }

  // Like verb(), from a folder that has nothing to do with the job.
  ProcessResult elsewhere(const std::string& name, std::vector<std::string> more = {},
                          const std::map<std::string, std::string>& environment = {}) {
    std::vector<std::string> argv = {binary("dtf-launch"), name, file_};
    argv.insert(argv.end(), more.begin(), more.end());
    return runProcess(std::move(argv), seconds(60), environment, "/");
  }

  // The output of status once it matches `pattern`; its last output after 20 s.
  std::string statusWith(const std::string& pattern) {
    const std::regex wanted(pattern);
    const auto end = std::chrono::steady_clock::now() + Process::kSlowest * seconds(20);
    std::string said = verb("status").out;
    while (!std::regex_search(said, wanted) && std::chrono::steady_clock::now() < end)
      said = verb("status").out;
    EXPECT_TRUE(std::regex_search(said, wanted)) << pattern << "\n" << said;
    return said;
  }

  // The lines that begin with `begin` and contain `part`.
  static std::vector<std::string> linesWith(const std::string& text, const std::string& begin,
                                            const std::string& part) {
    std::vector<std::string> found;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with(begin) && line.find(part) != line.npos) found.push_back(line);
    return found;
  }
  static std::vector<std::string> sortedLines(const std::string& text) {
    std::vector<std::string> lines = linesWith(text, "", "");
    std::sort(lines.begin(), lines.end());
    return lines;
  }

  // The beginning of a log line `after` from now.
  static std::string logTime(seconds after) {
    const std::time_t time =
        std::chrono::system_clock::to_time_t(std::chrono::system_clock::now() + after);
    std::tm parts{};
    ::gmtime_r(&time, &parts);
    char text[32];
    std::strftime(text, sizeof(text), "%FT%T.000+00:00", &parts);
    return text;
  }

  const std::string file_;
};

}  // namespace dtf::testing
