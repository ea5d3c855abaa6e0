// No value in a file crashes the reader: every key of the tables is read, checked and explained at
// its ends and with values of every other kind, as by dtf-launch.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <regex>
#include <set>
#include <string>

#include "common/base/error.h"
#include "common/base/text.h"
#include "common/cluster/cluster_yaml.h"
#include "common/cluster/schema.h"
#include "common/train/data_check.h"
#include "common/train/job_check.h"
#include "launcher/commands.h"
#include "launcher/keys_check.h"
#include "launcher/slurm/allocation.h"
#include "tests/support/repetitions.h"
#include "tests/support/temporary_files.h"
#include "tests/unit/launcher/keys_at_their_ends.h"

namespace dtf::launcher {
namespace {

constexpr HostMemory kSmallHost{uint64_t{1} << 30, uint64_t{1} << 30};

// Sends the output of verbs to /dev/null.
class NoStdout {
 public:
  NoStdout() : kept_(::dup(STDOUT_FILENO)) {
    std::fflush(stdout);
    const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    ::dup2(nowhere, STDOUT_FILENO);
    ::close(nowhere);
  }
  ~NoStdout() {
    std::fflush(stdout);
    ::dup2(kept_, STDOUT_FILENO);
    ::close(kept_);
  }
  NoStdout(const NoStdout&) = delete;
  NoStdout& operator=(const NoStdout&) = delete;

 private:
  const int kept_;
};

// Counts all files of a test; the test's processes share it.
struct Tally {
  int accepted = 0;
  int refused = 0;
};

class KeysAtTheirEnds : public ::testing::Test {
 protected:
  KeysAtTheirEnds()
      : tally_(*static_cast<Tally*>(::mmap(nullptr, sizeof(Tally), PROT_READ | PROT_WRITE,
                                           MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    writeKeyFiles();
  }
  ~KeysAtTheirEnds() override { ::munmap(&tally_, sizeof(Tally)); }

  // Checks and explains the job as dtf-launch does, on a host that runs all tasks.
  void readJob() {
    yaml::Report report;
    cluster::JobMarks marks;
    Options options;
    options.cluster_file = "c.yaml";
    cluster::JobSpec job = cluster::loadCluster("c.yaml", {}, report, &marks);
    if (job.launch.via == cluster::LaunchSpec::Via::kSlurm)
      placeOnNodes(job, nodesToCome(job.launch.slurm));
    checkKeys(
        job, marks.keys, [](const cluster::Address&) { return true; }, report);
    const std::optional<train::JobSize> size = train::checkJob(job, {kSmallHost, {}, {}}, report);
    report.throwIfAny();
    ASSERT_TRUE(size.has_value());
    const train::DataCounts counts = train::checkContents(job, report, [](const std::string&) {});
    report.throwIfAny();
    const NoStdout quiet;
    check(job, *size, counts, options);
    explain(job, options);
    ++tally_.accepted;
  }

  // A file is read, or rejected with its place; any other outcome ends this process or fails the
  // test.
  void read(const std::string& text) {
    std::filesystem::remove("c.yaml");  // a file that is truncated in place waits for its disk
    files_.write("c.yaml", text);
    try {
      readJob();
    } catch (const Error& error) {
      ++tally_.refused;
      checkRefusal(error, text.substr(0, 2000));
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what() << "\n" << text;
    }
  }

  static void checkRefusal(const Error& error, const std::string& text) {
    // Or the place in an empty file that the job names.
    static const std::regex place("(c\\.yaml:[0-9]+:[0-9]+|/dev/null): error: .*");
    const std::string message = printableLines(error.message());  // as main() does
    EXPECT_TRUE(error.code() == ErrorCode::kBadConfig || error.code() == ErrorCode::kBadData ||
                error.code() == ErrorCode::kPermission)
        << errorCodeName(error.code()) << ": " << message << "\n"
        << text;
    EXPECT_TRUE(
        std::regex_match(message.substr(0, std::min<size_t>(message.find('\n'), 200)), place))
        << message << "\n"
        << text;
    for (const char c : message)
      EXPECT_TRUE(static_cast<unsigned char>(c) >= ' ' || c == '\n') << "control in: " << message;
    EXPECT_LT(message.size(), 20'000u) << text;
  }

  static int failures() {
    return ::testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count();
  }

  // Runs `reads` in a process of its own: a crash there does not end the test, and the test reports
  // its file.
  void inProcess(const std::function<void()>& reads) {
    std::fflush(stdout);
    const pid_t pid = ::fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      const int before = failures();
      reads();
      std::fflush(stdout);
      ::_exit(failures() > before ? 1 : 0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    std::ifstream last("c.yaml");
    std::string text;
    std::getline(last, text);
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status) << " of\n" << text;
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }

  const testing::TemporaryFiles files_;
  Tally& tally_;
};

// Returns the place's file with `entries` in its map, and the key `name` at `value`.
std::string fileOf(const KeyPlace& place, std::string_view name, std::string_view value) {
  std::string map;
  for (const auto& [key, text] : place.entries)
    if (key != name) map += key + ": " + text + ", ";
  if (!name.empty()) map += std::string(name) + ": " + std::string(value);
  std::string text = place.file;
  text.replace(text.find('@'), 1, "{" + map + "}");
  return text;
}

// Returns whether `key` is in `table`, or in another table whose keys the same map accepts.
bool hasKey(const yaml::Table& table, std::string_view key) {
  return table.find(key) != nullptr || table.path.find("beside their own") != table.path.npos;
}

TEST(KeyPlaces, EachTableHasOne) {
  std::set<const yaml::Table*> with_place;
  for (const KeyPlace& place : keyPlaces()) {
    with_place.insert(place.table);
    EXPECT_NE(place.file.find('@'), std::string::npos) << place.file;
    for (const auto& [key, value] : place.entries)
      EXPECT_TRUE(hasKey(*place.table, key)) << place.table->path << ": " << key;
  }
  for (const yaml::Table* table : cluster::allTables())
    EXPECT_TRUE(with_place.contains(table)) << "no place for the keys of " << table->path;
}

TEST_F(KeysAtTheirEnds, EachKeyOfEachTableIsReadOrRefusedWithItsPlace) {
  constexpr int kEvery = dtf::testing::kIsSanitized ? 8 : 1;
  for (const KeyPlace& place : keyPlaces()) {
    SCOPED_TRACE(place.table->path);
    inProcess([&] {
      int files = 0;
      for (const yaml::Key& key : place.table->keys)
        for (const std::string& value : endsOf(key))
          if (files++ % kEvery == 0) read(fileOf(place, key.name, value));
    });
  }
  EXPECT_GT(tally_.accepted, dtf::testing::repetitions(1000));
  EXPECT_GT(tally_.refused, dtf::testing::repetitions(5000));
}

TEST_F(KeysAtTheirEnds, APlaceIsOfAJobThatRunsWhereItsMapIsWhole) {
  for (const KeyPlace& place : keyPlaces()) {
    // A map that chooses one of several kinds must choose one.
    const std::string_view path = place.table->path;
    const bool chooses = path == "durability" || path.find("kernel_initializer, ") != path.npos ||
                         path == "train.optimizer" || path == "train.model.loss" ||
                         path.ends_with("learning_rate") || path == "train.model.layers.N";
    if (chooses) continue;
    inProcess([&] {
      files_.write("c.yaml", fileOf(place, "", ""));
      try {
        readJob();
      } catch (const Error& error) {
        ADD_FAILURE() << error.message();
      }
    });
  }
}

}  // namespace
}  // namespace dtf::launcher
