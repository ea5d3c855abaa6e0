// Mistakes of users: each answer names the place and the remedy, with the exit code of the
// contract.

#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

#include <filesystem>

#include "tests/e2e/cluster_fixture.h"

namespace dtf::testing {

using std::chrono::seconds;

namespace {

std::string idxImages(uint32_t promised, uint32_t held) {
  const auto big_endian = [](uint32_t value) {
    return std::string{static_cast<char>(value >> 24), static_cast<char>(value >> 16),
                       static_cast<char>(value >> 8), static_cast<char>(value)};
  };
  return std::string("\0\0\x08\x03", 4) + big_endian(promised) + big_endian(28) + big_endian(28) +
         std::string(size_t{held} * 784, '\x10');
}

std::string idxLabels(uint32_t count, char label) {
  std::string bytes("\0\0\x08\x01", 4);
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(count >> shift);
  return bytes + std::string(count, label);
}

}  // namespace

class MistakesTest : public ClusterTest {
 protected:
  void expectMistake(const std::string& file, int exit_code, const std::vector<std::string>& texts,
                     std::vector<std::string> more = {}) {
    const ProcessResult result = launch(file, std::move(more), seconds(30));
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    for (const std::string& text : texts)
      EXPECT_NE(result.err.find(text), std::string::npos) << text << "\nin\n" << result.err;
    expectNothingLeft();
  }
  // Before anything is started: no log, no run folder, the cause once.
  void expectNothingStarted(const std::string& err, const std::string& cause) const {
    EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/runs"));
    const size_t first = err.find(cause);
    ASSERT_NE(first, std::string::npos) << err;
    EXPECT_EQ(err.find(cause, first + 1), std::string::npos) << "said twice\n" << err;
  }
  std::string idxTrain() const {
    return "data: {train: {format: idx, images: " + folder_.path() +
           "/images, labels: " + folder_.path() + "/labels}, batch_size: 10}";
  }
  // A cluster that trains on the IDX files of this test's folder.
  std::string writeIdxCluster() {
    return folder_.write(
        "idx.yaml",
        "job: idx\nrun_dir: " + folder_.path() +
            "/runs/idx\ncluster: {ps: [localhost:auto], worker: [localhost:auto]}\ntrain:\n"
            "  model: {input: {shape: [28, 28, 1]}, layers: [flatten: , dense: {units: 10}], loss: "
            "sparse_categorical_crossentropy}\n  " +
            idxTrain() + "\n  steps: 10\n");
  }
};

TEST_F(MistakesTest, MisspeltKeyWithLineColumnAndCaret) {
  const std::string file = folder_.write(
      "bad.yaml", "job: x\ncluster:\n  ps: [localhost:auto]\n  wrokers: [localhost:auto]\n");
  expectMistake(file, 78,
                {"bad.yaml:4:3: error: unknown key 'wrokers' in 'cluster' - did you mean 'worker'?",
                 "^~~~~~~"});
}

TEST_F(MistakesTest, AllMistakesAtOnce) {
  const std::string file = writeCluster({.steps = -5, .batch_size = 0, .optimizer = "{adma: {}}"});
  expectMistake(file, 78, {"steps", "batch_size", "did you mean 'adam'"});
}

TEST_F(MistakesTest, WrongType) {
  expectMistake(writeCluster({}), 78, {"--set train.steps=ten"}, {"--set", "train.steps=ten"});
}

TEST_F(MistakesTest, TwoTasksOnOneAddress) {
  const std::vector<int> ports = freePorts(3);
  expectMistake(writeCluster({.ports = {ports[0], ports[1], ports[2], ports[0]}}), 78,
                {"error:", "localhost:" + std::to_string(ports[0])});
}

TEST_F(MistakesTest, APortInUseAndWhoHoldsIt) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(fd, 1), 0);
  ASSERT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const int taken = ntohs(address.sin_port);
  std::vector<int> ports = freePorts(4);
  ports[1] = taken;
  const std::string holder = "pid " + std::to_string(::getpid());
  expectMistake(writeCluster({.ports = ports}), 69,
                {"job.yaml:4:", "error:", std::to_string(taken), holder});
  // The daemon by itself says the same.
  const ProcessResult result = startTask(folder_.path() + "/job.yaml", "ps", 1).wait(seconds(10));
  EXPECT_EQ(result.exit_code, 69) << result.err;
  EXPECT_NE(result.err.find(holder), std::string::npos) << result.err;
  ::close(fd);
}

TEST_F(MistakesTest, AMissingDataFile) {
  expectMistake(writeIdxCluster(), 65, {folder_.path() + "/", "No such file"});
}

TEST_F(MistakesTest, NothingStartsForAJobThatCannotTrain) {
  folder_.write("images", "label,pixel0,pixel1\n5,0,0\n");
  const std::string file = writeIdxCluster();
  for (const std::string verb : {"up", "check"}) {
    const ProcessResult result = runProcess({binary("dtf-launch"), verb, file}, seconds(30));
    EXPECT_EQ(result.exit_code, 65) << result.err;
    expectNothingStarted(result.err, "idx.yaml:6:39: error: " + folder_.path() +
                                         "/images: this looks like text such as CSV");
    expectNothingStarted(result.err, folder_.path() + "/labels: cannot open it: No such file");
  }
  const std::string no_train =
      folder_.write("no_train.yaml", "run_dir: " + folder_.path() +
                                         "/runs\ncluster: {ps: [localhost:auto], worker: "
                                         "[localhost:auto]}\n");
  const ProcessResult result = runProcess({binary("dtf-launch"), no_train}, seconds(30));
  EXPECT_EQ(result.exit_code, 78) << result.err;
  expectNothingStarted(result.err, "no_train.yaml:1:1: error: missing key 'train'");
}

TEST_F(MistakesTest, CheckSaysHowLargeTheModelIs) {
  const ProcessResult result =
      runProcess({binary("dtf-launch"), "check", writeCluster({})}, seconds(30));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("7850 parameters, 30.7 KiB: 30.6 KiB on ps/0, 40 B on ps/1"),
            std::string::npos)
      << result.out;
}

TEST_F(MistakesTest, ATruncatedDataFile) {
  folder_.write("images", idxImages(100, 60));
  folder_.write("labels", idxLabels(100, 3));
  expectMistake(writeIdxCluster(), 65, {"/images", "truncated"});
}

TEST_F(MistakesTest, ALabelThatTheModelDoesNotHave) {
  folder_.write("images", idxImages(100, 100));
  folder_.write("labels", idxLabels(100, 12));
  expectMistake(writeIdxCluster(), 65, {"12"});
}

TEST_F(MistakesTest, FewerLabelsThanImages) {
  folder_.write("images", idxImages(100, 100));
  folder_.write("labels", idxLabels(90, 3));
  expectMistake(writeIdxCluster(), 65, {"100", "90"});
}

TEST_F(MistakesTest, AModelWhoseShapesDoNotFit) {
  expectMistake(writeCluster({.layers = "[dense: {units: 10, name: softmax}]"}), 78,
                {"job.yaml:", "error:", "softmax", "flatten"});
}

TEST_F(MistakesTest, ARunDirectoryThatCannotBeWritten) {
  folder_.write("file", "in the way");
  expectMistake(writeCluster({}), 73, {"cannot write", folder_.path() + "/file"},
                {"--run-dir", folder_.path() + "/file/runs"});
}

TEST_F(MistakesTest, ALossThatIsNotANumber) {
  const std::string file = writeCluster({.mode = "sync",
                                         .steps = 5000,
                                         .optimizer = "{gradient_descent: {learning_rate: 1.0e+6}}",
                                         .layers = "[flatten: , dense: {units: 30, activation: "
                                                   "relu}, dense: {units: 30, activation: relu}, "
                                                   "dense: {units: 10}]"});
  expectMistake(file, 1, {"loss", "step", "learning_rate"});
  EXPECT_EQ(summary()["outcome"], "failed");
}

TEST_F(MistakesTest, AMissingClusterFile) {
  expectMistake(folder_.path() + "/none.yaml", 78, {"none.yaml"});
}

TEST_F(MistakesTest, ATaskListensBeyondLoopbackOnlyWhenAskedTo) {
  const std::string train = folder_.write(
      "train.yaml",
      "model: {input: {shape: [28, 28, 1]}, layers: [flatten: , dense: {units: 10}], "
      "loss: sparse_categorical_crossentropy}\ndata: {train: {format: digits, count: 20}, "
      "batch_size: 10}\nsteps: 1\n");
  const std::string port = std::to_string(freePorts(1).front());
  const std::string exposed = "0.0.0.0:" + port;
  for (const bool is_ps : {true, false}) {
    const std::string hosts = is_ps ? "--ps-hosts" : "--worker-hosts";
    std::vector<std::string> argv = {
        binary(is_ps ? "psd" : "workerd"),
        hosts + "=" + exposed,
        std::string(is_ps ? "--worker-hosts" : "--ps-hosts") + "=localhost:1",
        "--task-index=0",
        "--run-dir=" + folder_.path() + "/run",
        "--set=timeouts.start_seconds=0.2"};
    if (!is_ps) argv.push_back("--train=" + train);
    const ProcessResult refused = runProcess(argv, seconds(30));
    EXPECT_EQ(refused.exit_code, 78) << refused.err;
    EXPECT_NE(refused.err.find(hosts + " " + exposed + ": error: listening at " + exposed +
                               " would let everyone"),
              std::string::npos)
        << refused.err;
    EXPECT_NE(refused.err.find("--insecure"), std::string::npos) << refused.err;
    argv.push_back("--insecure");
    const ProcessResult allowed = runProcess(argv, seconds(30));
    EXPECT_EQ(allowed.err.find("error: listening"), std::string::npos) << allowed.err;
    EXPECT_NE(allowed.err.find("event=listening"), std::string::npos) << allowed.err;
    EXPECT_NE(allowed.exit_code, 78) << allowed.err;
  }
}

TEST_F(MistakesTest, ATaskThatServesListensBeyondLoopbackOnlyWhenAskedTo) {
  const std::string exposed = "0.0.0.0:" + std::to_string(freePorts(1).front());
  for (const bool is_ps : {true, false}) {
    const std::string hosts = is_ps ? "--ps-hosts" : "--worker-hosts";
    std::vector<std::string> argv = {
        binary(is_ps ? "psd" : "workerd"), hosts + "=" + exposed,
        std::string(is_ps ? "--worker-hosts" : "--ps-hosts") + "=localhost:1", "--task-index=0",
        "--serve"};
    const ProcessResult refused = runProcess(argv, seconds(30));
    EXPECT_EQ(refused.exit_code, 78) << refused.err;
    EXPECT_NE(refused.err.find(hosts + " " + exposed + ": error: listening at " + exposed +
                               " would let everyone"),
              std::string::npos)
        << refused.err;
    EXPECT_EQ(refused.err.find("event=serving"), std::string::npos) << refused.err;
    argv.push_back("--insecure");
    Process allowed(argv);
    EXPECT_TRUE(allowed.waitForOutput("event=serving", seconds(30))) << allowed.err();
    allowed.signal(SIGTERM);
    EXPECT_EQ(allowed.wait(seconds(30)).exit_code, 0);
  }
}

// Files that this user may not use. Root may use them all, so it runs without those capabilities.
TEST_F(MistakesTest, WhatTheUserMayNotIsNamedWithACodeOfItsOwn) {
  const auto launched = [this](const std::string& file) {
    std::vector<std::string> argv = launchCommand(file);
    if (::geteuid() == 0)
      argv.insert(argv.begin(), {"setpriv", "--bounding-set=-dac_override,-dac_read_search", "--"});
    return runProcess(argv, seconds(30), {}, folder_.path());
  };
  namespace fs = std::filesystem;
  const std::string closed = folder_.write("closed.yaml", "job: closed\n");
  fs::permissions(closed, fs::perms::none);
  const ProcessResult unreadable = launched(closed);
  EXPECT_EQ(unreadable.exit_code, 77) << unreadable.err;
  EXPECT_NE(unreadable.err.find(closed), std::string::npos) << unreadable.err;
  EXPECT_NE(unreadable.err.find("Permission denied"), std::string::npos) << unreadable.err;

  folder_.write("images", idxImages(20, 20));
  fs::permissions(folder_.write("labels", idxLabels(20, 1)), fs::perms::none);
  const ProcessResult no_labels = launched(writeIdxCluster());
  EXPECT_EQ(no_labels.exit_code, 77) << no_labels.err;
  EXPECT_NE(no_labels.err.find(folder_.path() + "/labels"), std::string::npos) << no_labels.err;

  fs::create_directories(folder_.path() + "/runs");
  fs::permissions(folder_.path() + "/runs", fs::perms::owner_read | fs::perms::owner_exec);
  const ProcessResult no_folder = launched(writeCluster({}));
  EXPECT_EQ(no_folder.exit_code, 77) << no_folder.err;
  EXPECT_NE(no_folder.err.find(folder_.path() + "/runs/job"), std::string::npos) << no_folder.err;
  fs::permissions(folder_.path() + "/runs", fs::perms::owner_all);
  expectNothingLeft();
}

// From too few to open any file to nearly enough for four tasks: no message asks to build dtf.
TEST_F(MistakesTest, TooFewOpenFilesAreNamed) {
  const std::string file = writeCluster({.steps = 20});
  int refused = 0;
  for (const int limit : {10, 14, 18, 22, 26}) {
    SCOPED_TRACE("ulimit -n " + std::to_string(limit));
    const ProcessResult result = runProcess(
        {"/bin/sh", "-c", "ulimit -n " + std::to_string(limit) + " && exec \"$0\" \"$1\"",
         binary("dtf-launch"), file},
        seconds(60), {}, folder_.path());
    EXPECT_EQ(result.err.find("build it"), std::string::npos) << result.err;
    if (result.exit_code == 0) continue;
    ++refused;
    EXPECT_NE(result.err.find("this process may have " + std::to_string(limit) + " files"),
              std::string::npos)
        << result.err;
    EXPECT_NE(result.err.find("Too many open files"), std::string::npos) << result.err;
    EXPECT_NE(result.exit_code, 70) << "no bug of dtf\n" << result.err;
  }
  EXPECT_GT(refused, 0);
  expectNothingLeft();
}

TEST_F(MistakesTest, TheLogLevelIsThatOfEveryProgram) {
  const std::string file = writeCluster({.steps = 20, .ports = freePorts(4)});
  const ProcessResult launched = launch(file, {"--log-level", "warning"});
  EXPECT_EQ(launched.exit_code, 0) << launched.err;
  EXPECT_EQ(launched.err.find("event="), std::string::npos) << launched.err;
  EXPECT_EQ(launched.err.find("softmax/weights"), std::string::npos) << launched.err;
  EXPECT_EQ(folder_.read("runs/job/logs/worker-0.1.log"), "");
  std::vector<Process> tasks;
  for (const char* job : {"ps", "worker"})
    for (const int index : {0, 1})
      tasks.push_back(startTask(file, job, index, {"--log-level", "warning"}));
  for (Process& task : tasks) {
    const ProcessResult result = task.wait(seconds(30));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err, "");
  }
}

TEST_F(MistakesTest, ADaemonsCommandLineIsAnsweredPlainly) {
  for (const std::string program : {"psd", "workerd"}) {
    const ProcessResult result = runProcess({binary(program), "--steps", "5"}, seconds(30));
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.err, program +
                              ": error: unknown option '--steps': to change this key of the file, "
                              "give --set train.steps=VALUE; try '" +
                              program + " --help'\n");
  }
}

TEST_F(MistakesTest, AnUnknownOption) {
  const ProcessResult result = runProcess({binary("dtf-launch"), "--colour-me"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_NE(result.err.find("--help"), std::string::npos) << result.err;
}

}  // namespace dtf::testing
