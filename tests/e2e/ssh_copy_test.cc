#include <fmt/core.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "tests/e2e/ssh_fixture.h"

// launch.copy over a real sshd, on hosts that have nothing of dtf and none of the data: each has a
// home and a run directory of its own, and sees neither the build nor the launcher's data.

namespace dtf::testing {

namespace fs = std::filesystem;

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::chrono::seconds kCopyPatience{90};
constexpr int kCopySteps = 60;

class SshCopyTest : public SshTest {
 protected:
  void SetUp() override {
    if (runProcess({"unshare", "-rm", "true"}).exit_code != 0)
      GTEST_SKIP() << "this user can't mount disks of its own (unshare -rm)";
    // Each command runs on the host that has the address the client called.
    sshd_more_ = "ForceCommand exec " + folder_.path() + "/host.sh\n";
    const std::string build = std::getenv("DTF_BUILD_ROOT");
    folder_.write("host.sh", fmt::format(R"sh(#!/bin/sh
host=$(echo "$SSH_CONNECTION" | cut -d ' ' -f 3)
export disk={0}/disks/$host
mkdir -p $disk/home $disk/run $disk/bin
export HOME=$disk/home PATH=$disk/bin:$PATH
cd
enter() {{
  exec unshare -rm sh -c '
    mount --bind $disk/run {0}/runs/job || exit
    for hidden in {0}/data {0}/bin {1}; do mount -t tmpfs none $hidden || exit; done
    [ ! -f $disk/small ] || mount -t tmpfs -o size=1m none $disk/home || exit
    exec $SSH_ORIGINAL_COMMAND'
}}
[ -f $disk/cut ] || enter
bytes=$(cat $disk/cut)
rm $disk/cut
{{ stdbuf -o0 head -c $bytes; kill -9 $PPID; }} | enter
)sh",
                                         folder_.path(), build));
    fs::permissions(folder_.path() + "/host.sh", fs::perms::owner_all);
    fs::create_directories(folder_.path() + "/data");
    fs::create_directories(folder_.path() + "/runs/job");
    SshTest::SetUp();
  }

  // The chief and the ps on one host, another worker on the next.
  std::string job(const std::string& copy, const std::string& shape, const std::string& data,
                  int steps = kCopySteps) {
    folder_.write("train.yaml",
                  fmt::format("model:\n  input: {{shape: {}}}\n"
                              "  layers: [flatten: , dense: {{units: 10, name: softmax}}]\n"
                              "  loss: sparse_categorical_crossentropy\n  metrics: [accuracy]\n{}"
                              "replication: {{mode: sync}}\n"
                              "optimizer: {{gradient_descent: {{learning_rate: 0.01}}}}\n"
                              "steps: {}\ncheckpoint: none\n",
                              shape, data, steps));
    return folder_.write("job.yaml",
                         fmt::format("job: job\nrun_dir: {}/runs/job\n"
                                     "cluster:\n  ps: [\"127.0.0.1:auto\"]\n"
                                     "  worker: [\"127.0.0.1:auto\", \"127.0.0.2:auto\"]\n"
                                     "launch:\n  via: ssh\n  ssh_config: ssh_config\n"
                                     "{}train: train.yaml\n",
                                     folder_.path(), copy));
  }
  // Two tables, by paths that are relative to where the job is started.
  std::string tables(const std::string& copy = kAll, int steps = kCopySteps) {
    for (const int table : {1, 2}) {
      std::ofstream file(folder_.path() + fmt::format("/data/{}.csv", table));
      file << "a,b,c,y\n";
      for (int i = 0; i < 200; ++i)
        file << fmt::format("{},{},{},{}\n", i % 7 * table, i % 11, i % 13, i % 10);
    }
    return job(copy, "[3]",
               "data:\n  train: {format: csv, files: [data/1.csv], label_column: y}\n"
               "  eval: {format: csv, files: [data/2.csv], label_column: y}\n  batch_size: 20\n",
               steps);
  }
  ProcessResult train(const std::string& file) { return start(file).wait(kCopyPatience); }

  std::string disk(int host) const {
    return folder_.path() + "/disks/127.0.0." + std::to_string(host);
  }
  fs::path copies(int host) const { return fs::path(disk(host)) / "home/.cache/dtf/copies"; }
  // SHA-256 of a file of this host, by sha256sum.
  static std::string digestOf(const std::string& file) {
    return runProcess({"sha256sum", "-b", file}).out.substr(0, 64);
  }
  // Name -> inode.
  std::map<std::string, ino_t> kept(int host) const {
    std::map<std::string, ino_t> files;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(copies(host) / "files", none)) {
      struct stat status {};
      EXPECT_EQ(::stat(entry.path().c_str(), &status), 0) << entry.path();
      files[entry.path().filename()] = status.st_ino;
    }
    return files;
  }
  // Changes one byte of a read-only copy.
  void damage(const fs::path& file) const {
    ASSERT_TRUE(fs::exists(file)) << file;
    fs::permissions(file, fs::perms::owner_all);
    std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekp(static_cast<std::streamoff>(fs::file_size(file) / 2));
    bytes << "x";
  }
  void expectWhole(int host) const {
    for (const auto& [name, inode] : kept(host))
      EXPECT_EQ(digestOf(copies(host) / "files" / name), name);
    for (const auto& entry : fs::directory_iterator(copies(host)))
      EXPECT_THAT(entry.path().filename().string(), Not(HasSubstr(".use-")));
  }
  // Records of CIFAR-10; all zeros, but for the labels.
  static void writeCifar(const std::string& path, int records) {
    std::ofstream file(path, std::ios::binary);
    std::string record(3073, '\0');
    for (int i = 0; i < records; ++i) {
      record[0] = static_cast<char>(i % 10);
      record[1] = static_cast<char>(i % 251);
      record[2] = static_cast<char>(i % 241);
      file << record;
    }
  }

  static constexpr const char* kImage = "[32, 32, 3]";
  static constexpr const char* kAll = "  copy: {programs: true, data: true}\n";
};

TEST_F(SshCopyTest, HostsWithoutDtfAndWithoutDataTrainWhatThisOneTrains) {
  const std::string file = tables();
  const ProcessResult first = train(file);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  EXPECT_THAT(first.err, HasSubstr("to 2 hosts in "));
  EXPECT_EQ(summary()["global_step"], kCopySteps);
  const std::string digest = summary().stringAt("parameters_digest");
  const std::string table = digestOf(folder_.path() + "/data/1.csv");
  const std::string of_chief = digestOf(folder_.path() + "/data/2.csv");
  const auto chiefs = kept(1), others = kept(2);
  EXPECT_EQ(chiefs.size(), 4u) << "psd, workerd, and two tables";
  EXPECT_TRUE(others.contains(table));
  EXPECT_TRUE(chiefs.contains(of_chief));
  EXPECT_FALSE(others.contains(of_chief)) << "only the chief evaluates";
  expectWhole(1);
  expectWhole(2);
  expectNoTask();

  const ProcessResult second = train(file);
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_THAT(second.err, HasSubstr("nothing to copy: every host has all files"));
  EXPECT_EQ(kept(1), chiefs);
  EXPECT_EQ(kept(2), others);
  EXPECT_EQ(summary()["parameters_digest"], digest);

  const std::string text = folder_.read("job.yaml");
  folder_.write("job.yaml", text.substr(0, text.find("launch:")) + "train: train.yaml\n");
  const ProcessResult here = train(file);
  ASSERT_EQ(here.exit_code, 0) << here.err;
  EXPECT_EQ(summary()["parameters_digest"], digest);
}

// The other tests rely on it: these hosts have neither programs nor data.
TEST_F(SshCopyTest, WithoutCopiesSuchHostsAreOfNoUse) {
  const ProcessResult bare = train(tables(""));
  EXPECT_EQ(bare.exit_code, 78) << bare.err;
  EXPECT_THAT(bare.err, HasSubstr("there is no dtf-agent in the PATH"));
  const ProcessResult programs = train(tables("  copy: {programs: true}\n"));
  EXPECT_EQ(programs.exit_code, 65) << programs.err;
  EXPECT_THAT(programs.err, HasSubstr("data/1.csv: cannot open it"));
  expectNoTask();
}

TEST_F(SshCopyTest, ADamagedCopyIsSentAgain) {
  const std::string file = tables();
  ASSERT_EQ(train(file).exit_code, 0);
  const std::string digest = summary().stringAt("parameters_digest");
  const std::string build = std::getenv("DTF_BUILD_ROOT");
  damage(copies(1) / "files" / digestOf(binary("psd")));
  damage(copies(2) / "files" / digestOf(folder_.path() + "/data/1.csv"));
  damage(copies(2) / "agents" / digestOf(build + "/launcher/dtf-agent") / "dtf-agent");
  const ProcessResult result = train(file);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("to 2 hosts in "));
  EXPECT_EQ(summary()["parameters_digest"], digest);
  expectWhole(1);
  expectWhole(2);
  expectNoTask();
}

TEST_F(SshCopyTest, AHostThatIsLostIsBroughtBackWithItsCopies) {
  Process launcher = start(tables(kAll, 100'000'000));
  ASSERT_TRUE(launcher.waitForOutput("all 3 tasks are ready", kCopyPatience)) << launcher.err();
  ASSERT_TRUE(launcher.waitForOutput("step ", kCopyPatience)) << launcher.err();
  kill9(awaitPid("ssh", "-- 127.0.0.2"));
  ASSERT_TRUE(launcher.waitForOutput("worker/1 is back", kCopyPatience)) << launcher.err();
  launcher.signal(SIGTERM);
  launcher.wait(kCopyPatience);
  expectNoTask();
}

// The cut is in the middle of a file that is larger than a host's write buffer.
TEST_F(SshCopyTest, ACopyThatWasCutGoesOnWithTheFilesThatAreNotThere) {
  writeCifar(folder_.path() + "/data/a.bin", 1000);
  writeCifar(folder_.path() + "/data/b.bin", 16000);
  const std::string file = job(
      kAll, kImage,
      "data: {train: {format: cifar10, files: [data/a.bin, data/b.bin]}, batch_size: 20}\n", 20);
  const std::string build = std::getenv("DTF_BUILD_ROOT");
  uint64_t bytes = uint64_t{40} << 20;
  for (const std::string& each : {build + "/launcher/dtf-agent", binary("psd"), binary("workerd"),
                                  folder_.path() + "/data/a.bin"})
    bytes += fs::file_size(each);
  fs::create_directories(disk(2));
  std::ofstream(disk(2) + "/cut") << bytes;
  const ProcessResult cut = train(file);
  EXPECT_EQ(cut.exit_code, 69) << cut.err;
  EXPECT_THAT(cut.err, HasSubstr("job.yaml:"));
  EXPECT_THAT(cut.err, HasSubstr("127.0.0.2: "));
  expectNoTask();
  const std::string large = digestOf(folder_.path() + "/data/b.bin");
  const auto before = kept(2);
  EXPECT_TRUE(before.contains(digestOf(binary("workerd"))));
  EXPECT_TRUE(before.contains(digestOf(folder_.path() + "/data/a.bin")));
  EXPECT_FALSE(before.contains(large)) << "it had not come to its end";
  const ProcessResult result = train(file);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  auto after = kept(2);
  EXPECT_EQ(after.erase(large), 1u);
  EXPECT_EQ(after, before) << "nothing was sent twice, nothing half is left";
  expectWhole(2);
  expectNoTask();
}

TEST_F(SshCopyTest, AHostOfAnotherKindIsRefusedInWords) {
  fs::create_directories(disk(2) + "/bin");
  const std::string uname = disk(2) + "/bin/uname";
  std::ofstream(uname) << "#!/bin/sh\necho Linux riscv128\n";
  fs::permissions(uname, fs::perms::owner_all);
  const ProcessResult result = train(tables());
  EXPECT_EQ(result.exit_code, 78) << result.err;
  EXPECT_THAT(result.err, HasSubstr("job.yaml:5:"));
  EXPECT_THAT(result.err, HasSubstr("error: 127.0.0.2: it is Linux riscv128, and the programs here "
                                    "are for Linux "));
  EXPECT_FALSE(fs::exists(copies(2)));
  expectNoTask();
}

TEST_F(SshCopyTest, AFullDiskIsToldInWords) {
  fs::create_directories(disk(2));
  std::ofstream(disk(2) + "/small") << "";
  const ProcessResult result = train(tables());
  EXPECT_EQ(result.exit_code, 73) << result.err;
  EXPECT_THAT(result.err, HasSubstr("error: 127.0.0.2: the folder for copies there, "
                                    "~/.cache/dtf/copies, can't be written"));
  EXPECT_THAT(result.err, HasSubstr("No space left on device"));
  expectNoTask();
}

TEST_F(SshCopyTest, DataThatAreMoreThanTheBoundAreRefusedWhereItIsGiven) {
  const std::string file =
      job("  copy: {data: true, programs: true, max_gib: 1}\n", kImage,
          "data: {train: {format: cifar10, files: [data/a.bin]}, batch_size: 20}\n");
  writeCifar(folder_.path() + "/data/a.bin", 1);
  fs::resize_file(folder_.path() + "/data/a.bin", uint64_t{3073} * 350'000);  // a hole
  const ProcessResult result = train(file);
  EXPECT_EQ(result.exit_code, 78) << result.err;
  EXPECT_THAT(result.err, HasSubstr("train.yaml:6:8: error: 1.0 GiB must be copied to a host, and "
                                    "launch.copy.max_gib is 1"));
  EXPECT_FALSE(fs::exists(folder_.path() + "/disks")) << "no host was asked";
}

}  // namespace dtf::testing
