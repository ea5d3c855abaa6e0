#pragma once

// Remedies that messages name, tried: a row has an input that is wrong, the part of the message
// that names the remedy, and that remedy applied. The same command must then do without an error,
// or be refused for another reason, which the row names.

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/e2e/cluster_fixture.h"

namespace dtf::testing {

// The changes of a row, on top of the earlier ones. Value type.
struct Edits {
  std::vector<std::pair<std::string, std::string>> job =
      {};                                         // of job.yaml: a part, and its successor
  std::map<std::string, std::string> files = {};  // by name, and their bytes
  std::vector<std::string> argv = {};     // in place of the command; job.yaml comes behind the verb
  std::vector<std::string> more = {};     // words behind the command
  std::vector<std::string> first = {};    // a command to run before the command
  std::vector<std::string> removed = {};  // files or folders
};

struct Remedy {
  std::string phrase;  // of the message: the remedy in its words
  Edits wrong;
  Edits mended;
  std::string later = {};  // the reason of the next refusal; empty: none follows
};

class RemediesTest : public ClusterTest {
 protected:
  // Tries each row in a folder of its own, with `job` as job.yaml and `files` beside it. `kept`: a
  // folder to copy there as "run"; empty: none.
  void expectRemedies(const std::string& job, const std::map<std::string, std::string>& files,
                      const std::vector<Remedy>& rows, const std::string& kept = "") {
    for (size_t row = 0; row < rows.size(); ++row) {
      const Remedy& remedy = rows[row];
      SCOPED_TRACE("row " + std::to_string(row) + ": " + remedy.phrase);
      place_ = folder_.path() + "/" + std::to_string(row);
      std::filesystem::create_directories(place_);
      if (!kept.empty())
        std::filesystem::copy(kept, place_ + "/run", std::filesystem::copy_options::recursive);
      job_ = job;
      argv_ = {"check"};
      for (const auto& [name, bytes] : files) write(name, bytes);
      apply(remedy.wrong);
      const ProcessResult refused = runCommand(argv_);
      EXPECT_NE(refused.exit_code, 0) << refused.out;
      EXPECT_NE(refused.err.find(remedy.phrase), std::string::npos) << refused.err;
      apply(remedy.mended);
      const ProcessResult mended = runCommand(argv_);
      if (remedy.later.empty()) {
        EXPECT_EQ(mended.exit_code, 0) << "with the remedy:\n" << job_ << mended.err;
      } else {
        EXPECT_NE(mended.exit_code, 0) << "with the remedy:\n" << job_ << mended.out;
        EXPECT_NE(mended.err.find(remedy.later), std::string::npos) << mended.err;
        EXPECT_EQ(mended.err.find(remedy.phrase), std::string::npos) << mended.err;
      }
    }
    expectNothingLeft();
  }

 private:
  void write(const std::string& name, const std::string& bytes) const {
    const std::filesystem::path path = place_ + "/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << bytes;
  }

  void apply(const Edits& edits) {
    for (const auto& [part, successor] : edits.job) {
      const size_t at = job_.find(part);
      ASSERT_NE(at, std::string::npos) << part << " is not in\n" << job_;
      job_.replace(at, part.size(), successor);
    }
    for (const std::string& name : edits.removed) std::filesystem::remove_all(place_ + "/" + name);
    for (const auto& [name, bytes] : edits.files) write(name, bytes);
    if (!edits.argv.empty()) argv_ = edits.argv;
    argv_.insert(argv_.end(), edits.more.begin(), edits.more.end());
    write("job.yaml", job_);
    if (edits.first.empty()) return;
    const ProcessResult first = runCommand(edits.first);
    EXPECT_EQ(first.exit_code, 0) << first.err;
  }

  ProcessResult runCommand(std::vector<std::string> argv) const {
    const bool is_daemon = argv[0] == "psd" || argv[0] == "workerd";
    if (is_daemon) {
      argv[0] = binary(argv[0]);
    } else {
      const bool names_file = argv.size() > 1 && argv[1].ends_with(".yaml");
      if (argv[0] != "keys" && !names_file) argv.insert(argv.begin() + 1, "job.yaml");
      argv.insert(argv.begin(), binary("dtf-launch"));
    }
    return runProcess(std::move(argv), std::chrono::seconds(60), {}, place_);
  }

  std::string place_;  // the row's folder
  std::string job_;
  std::vector<std::string> argv_;
};

}  // namespace dtf::testing
