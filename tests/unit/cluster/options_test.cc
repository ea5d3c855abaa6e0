#include "common/cluster/options.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "common/base/error.h"
#include "common/cluster/command_line.h"
#include "tests/support/temporary_files.h"

namespace dtf::cluster {

using testing::badConfigOf;
using testing::TemporaryFiles;

namespace {

// A variable of the environment.
class GivenVariable {
 public:
  GivenVariable(const char* name, const char* text) : name_(name) { ::setenv(name, text, 1); }
  ~GivenVariable() { ::unsetenv(name_); }
  GivenVariable(const GivenVariable&) = delete;
  GivenVariable& operator=(const GivenVariable&) = delete;

 private:
  const char* const name_;
};

class OptionsTest : public ::testing::Test {
 protected:
  OptionsTest() {
    files_.write("t.yaml", "model: {input: {shape: [4]}, layers: [relu], loss: mse}\n");
    files_.write("c.yaml", "cluster: {ps: [a:1, a:2], worker: [b:1]}\ntrain: t.yaml\n");
    files_.write("auto.yaml", "cluster: {ps: ['a:auto'], worker: [b:1]}\ntrain: t.yaml\n");
    files_.write("towers.yaml",
                 "cluster: {ps: [a:1], worker: [{address: b:1, devices: [cpu:0, cpu:1]}]}\n");
    files_.write("untrained.yaml", "cluster: {ps: [a:1], worker: [b:1]}\n");
  }
  static TaskOptions parse(JobKind binary, std::vector<const char*> words) {
    words.insert(words.begin(), "program");
    return parseTaskCommandLine(static_cast<int>(words.size()), words.data(), binary);
  }
  static std::string usageError(JobKind binary, std::vector<const char*> words) {
    try {
      parse(binary, std::move(words));
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::kUsage) << e.message();
      return e.message();
    }
    return "no error";
  }

  TemporaryFiles files_;
};

}  // namespace

TEST_F(OptionsTest, ReadsAFileAndATask) {
  const TaskOptions options =
      parse(JobKind::kPs, {"--cluster", "c.yaml", "--task", "1", "--log-level=debug"});
  EXPECT_FALSE(options.answer);
  EXPECT_EQ(options.task, (TaskId{JobKind::kPs, 1}));
  EXPECT_EQ(options.job.cluster.ps.size(), 2u);
  EXPECT_EQ(options.log_level, log::Level::kDebug);
  EXPECT_EQ(options.job.run_dir, "runs/job");
}

TEST_F(OptionsTest, TfConfigGivesTheClusterAndTheTaskThatNoOptionNames) {
  const GivenVariable given("TF_CONFIG",
                            R"({"cluster": {"ps": ["a:1", "a:2"], "chief": ["b:1"],
                                            "worker": ["c:1"]},
                                "task": {"type": "worker", "index": 0}})");
  const TaskOptions worker = parse(JobKind::kWorker, {"--train", "t.yaml"});
  EXPECT_EQ(worker.task, (TaskId{JobKind::kWorker, 1}));
  EXPECT_EQ(worker.job.cluster.ps.at(1).address.str(), "a:2");
  EXPECT_EQ(worker.job.cluster.worker.at(0).address.str(), "b:1");
  EXPECT_EQ(parse(JobKind::kPs, {"--task-index=1"}).task, (TaskId{JobKind::kPs, 1}));
  EXPECT_EQ(usageError(JobKind::kPs, {}),
            "TF_CONFIG's task is worker/1: run workerd; try 'psd --help'");
  // Options win, and the two may not be of different clusters.
  EXPECT_EQ(
      parse(JobKind::kPs, {"--cluster=c.yaml", "--task=1"}).job.cluster.worker.at(0).address.str(),
      "b:1");
  const std::vector<const char*> same = {"--ps-hosts=a:1,a:2", "--worker-hosts=b:1,c:1",
                                         "--train=t.yaml"};
  EXPECT_EQ(parse(JobKind::kWorker, same).task, (TaskId{JobKind::kWorker, 1}));
  EXPECT_EQ(usageError(JobKind::kWorker, {"--ps-hosts=a:1", "--worker-hosts=x:1,y:1"}),
            "TF_CONFIG's worker/1 is a task of another cluster than the command line's: give "
            "--task-index, or unset TF_CONFIG; try 'workerd --help'");
}

TEST_F(OptionsTest, TfConfigMayNameTheTaskAlone) {
  const GivenVariable given("TF_CONFIG", R"({"task": {"type": "ps", "index": 1}})");
  EXPECT_EQ(parse(JobKind::kPs, {"--cluster=c.yaml"}).task, (TaskId{JobKind::kPs, 1}));
  EXPECT_EQ(usageError(JobKind::kPs, {}),
            "expected --cluster FILE, or --ps-hosts and --worker-hosts: TF_CONFIG has no "
            "\"cluster\"; try 'psd --help'");
}

TEST_F(OptionsTest, ATfConfigThatIsNoneIsNotRead) {
  for (const char* text : {"", "{"}) {
    const GivenVariable given("TF_CONFIG", text);
    EXPECT_FALSE(parse(JobKind::kPs, {"--cluster=c.yaml", "--task=1"}).answer) << text;
  }
}

TEST_F(OptionsTest, ReadsTensorFlowsFlagsInBothSpellings) {
  for (const bool underscores : {false, true}) {
    std::vector<const char*> words = {
        "--ps-hosts=a:1,b_c:2", "--worker-hosts", "c:3",     "--task-index=0",
        "--job-name",           "worker",         "--train", "t.yaml"};
    if (underscores)
      words = {"--ps_hosts=a:1,b_c:2", "--worker_hosts", "c:3",     "--task_index=0",
               "--job_name",           "worker",         "--train", "t.yaml"};
    const TaskOptions options = parse(JobKind::kWorker, words);
    EXPECT_EQ(options.task, (TaskId{JobKind::kWorker, 0}));
    EXPECT_EQ(options.job.cluster.ps.at(1).address.str(), "b_c:2");
    EXPECT_TRUE(options.job.train);
  }
}

TEST_F(OptionsTest, SetIsRepeatableAndRunDirWins) {
  const TaskOptions options =
      parse(JobKind::kWorker, {"--cluster=c.yaml", "--task=0", "--set", "train.steps=5", "--set",
                               "run_dir=x", "--run-dir", "y"});
  EXPECT_EQ(options.job.train->steps, 5u);
  EXPECT_EQ(options.job.run_dir, "y");
}

TEST_F(OptionsTest, ThreadsAreAWorkers) {
  const TaskOptions options =
      parse(JobKind::kWorker, {"--cluster", "c.yaml", "--task", "0", "--threads", "3"});
  EXPECT_EQ(options.job.cluster.worker.at(0).threads, 3);
  const auto error = [](JobKind binary, const char* threads) {
    return usageError(binary, {"--cluster", "c.yaml", "--task", "0", "--threads", threads});
  };
  EXPECT_NE(error(JobKind::kWorker, "0").find("--threads must be from 1 to 1024, got 0"),
            std::string::npos);
  EXPECT_NE(error(JobKind::kWorker, "2000").find("got 2000"), std::string::npos);
  EXPECT_NE(error(JobKind::kPs, "2").find("--threads is for workerd"), std::string::npos);
}

TEST_F(OptionsTest, MetricsAreAtThePortOfTheFileOrTheOption) {
  const auto port = [](std::vector<const char*> more) {
    std::vector<const char*> words = {"--cluster", "c.yaml", "--task", "0"};
    words.insert(words.end(), more.begin(), more.end());
    return parse(JobKind::kWorker, words).metrics_port;
  };
  EXPECT_EQ(port({}), std::nullopt);
  EXPECT_EQ(port({"--metrics-port", "auto"}), 0);
  EXPECT_EQ(port({"--metrics-port", "9400"}), 9400);
  EXPECT_EQ(port({"--set", "metrics.port=auto"}), 0);
  EXPECT_EQ(port({"--set", "metrics.port=9400", "--metrics-port", "9500"}), 9500);
  EXPECT_NE(usageError(JobKind::kPs, {"--cluster", "c.yaml", "--task", "0", "--metrics-port", "0"})
                .find("bad --metrics-port '0': a port is from 1 to 65535, or auto"),
            std::string::npos);
}

TEST_F(OptionsTest, AnswersHelpAndVersionBeforeAnythingElse) {
  const TaskOptions help = parse(JobKind::kPs, {"--task", "9", "--help"});
  ASSERT_TRUE(help.answer);
  EXPECT_NE(help.answer->find("psd --cluster configs/clusters/local.yaml --task 0"),
            std::string::npos);
  EXPECT_TRUE(help.answer->ends_with("\n"));
  for (const char* word : {"-h", "-?", "help"})
    EXPECT_EQ(parse(JobKind::kPs, {word}).answer, help.answer) << word;
  EXPECT_EQ(parse(JobKind::kWorker, {"-V"}).answer, parse(JobKind::kWorker, {"--version"}).answer);
  EXPECT_TRUE(parse(JobKind::kWorker, {"--version"}).answer->starts_with("workerd "));
  EXPECT_NE(parse(JobKind::kWorker, {"--help-config"}).answer->find("batch_size"),
            std::string::npos);
}

TEST_F(OptionsTest, APsNeedsNoTrainPartAWorkerDoes) {
  EXPECT_FALSE(
      parse(JobKind::kPs, {"--ps-hosts=a:1", "--worker-hosts=b:1", "--task-index=0"}).job.train);
  EXPECT_EQ(
      usageError(JobKind::kWorker, {"--ps-hosts=a:1", "--worker-hosts=b:1", "--task-index=0"}),
      "a worker needs a train file: give --train TRAIN.yaml; try 'workerd --help'");
  EXPECT_NE(usageError(JobKind::kWorker, {"--cluster=untrained.yaml", "--task=0"})
                .find("--set train=TRAIN.yaml"),
            std::string::npos);
}

// A choice of each worker by itself could differ. A ps takes what the workers declare.
TEST_F(OptionsTest, AutoPlacementIsForDtfLaunch) {
  const std::vector<const char*> words = {"--cluster=c.yaml", "--task=0", "--set",
                                          "train.placement=auto"};
  const std::string error = badConfigOf([&] { parse(JobKind::kWorker, words); });
  EXPECT_NE(error.find("'placement: auto' is decided before the tasks start"), std::string::npos)
      << error;
  EXPECT_NE(error.find("explain --measure"), std::string::npos);
  EXPECT_NO_THROW(parse(JobKind::kPs, words));
}

TEST_F(OptionsTest, WhoServesHasNoJob) {
  for (const JobKind job : {JobKind::kPs, JobKind::kWorker}) {
    EXPECT_TRUE(
        parse(job, {"--ps-hosts=a:1", "--worker-hosts=b:1", "--task-index=0", "--serve"}).serves);
    EXPECT_FALSE(
        parse(JobKind::kPs, {"--ps-hosts=a:1", "--worker-hosts=b:1", "--task-index=0"}).serves);
  }
  EXPECT_EQ(usageError(JobKind::kWorker, {"--ps-hosts=a:1", "--worker-hosts=b:1", "--task-index=0",
                                          "--serve", "--fresh"}),
            "--serve runs no job: leave --fresh out; try 'workerd --help'");
  const auto refusal = [](const char* option) {
    return usageError(JobKind::kPs, {"--ps-hosts=a:1", "--worker-hosts=b:1", "--task-index=0",
                                     "--serve", option});
  };
  EXPECT_EQ(refusal("--train=train.yaml"),
            "--serve runs no job: leave --train out; try 'psd --help'");
  EXPECT_EQ(refusal("--run-dir=runs/1"),
            "--serve runs no job: leave --run-dir out; try 'psd --help'");
  EXPECT_EQ(refusal("--set=train.steps=5"),
            "--serve runs no job: leave --set train.steps=5 out; try 'psd --help'");
  const TaskOptions towers =
      parse(JobKind::kWorker, {"--cluster", "towers.yaml", "--task", "0", "--serve"});
  EXPECT_EQ(devicesOf(towers.job.cluster.worker.at(0)),
            (std::vector<std::string>{"cpu:0", "cpu:1"}))
      << "it has the devices of the file";
}

TEST_F(OptionsTest, UsageErrorsAreOneLineThatSaysWhatToDo) {
  const std::pair<std::vector<const char*>, const char*> cases[] = {
      {{"--tsak", "1"}, "unknown option '--tsak' - did you mean '--task'? try 'psd --help'"},
      {{"--banana"}, "unknown option '--banana'; try 'psd --help'"},
      {{"-x"}, "unknown option '-x'; try 'psd --help'"},
      {{}, "expected --cluster FILE, or --ps-hosts and --worker-hosts; try 'psd --help'"},
      {{"c.yaml"}, "unexpected argument 'c.yaml'; try 'psd --help'"},
      {{"--cluster", "c.yaml"},
       "--task is missing: the index of this ps, from 0; try 'psd --help'"},
      {{"--cluster=c.yaml", "--task=2"},
       "there is no ps/2: the cluster has 2 ps tasks, numbered from 0; try 'psd --help'"},
      {{"--cluster=c.yaml", "--task=one"},
       "--task expects a whole number from 0 on, got 'one'; try 'psd --help'"},
      {{"--cluster=c.yaml", "--task=-1"},
       "--task expects a whole number from 0 on, got '-1'; try 'psd --help'"},
      {{"--cluster=c.yaml", "--task=0", "--task=1"}, "--task is given twice; try 'psd --help'"},
      {{"--cluster=c.yaml", "--task=0", "--task_index=1"},
       "--task and --task-index are the same option: give one; try 'psd --help'"},
      {{"--cluster=c.yaml", "--task=0", "--ps-hosts=a:1"},
       "--cluster and --ps-hosts exclude each other; try 'psd --help'"},
      {{"--cluster=c.yaml", "--task=0", "--train=t.yaml"},
       "the file of --cluster names the train file: use --set train=FILE, not --train; try 'psd "
       "--help'"},
      {{"--ps-hosts=a:1", "--task-index=0"}, "--worker-hosts is missing; try 'psd --help'"},
      {{"--cluster=c.yaml", "--task=0", "--job-name=worker"},
       "psd runs only ps tasks: for --job-name worker run workerd; try 'psd --help'"},
      {{"--cluster=c.yaml", "--task=0", "--job-name=chief"},
       "--job-name expects ps or worker, got 'chief'; try 'psd --help'"},
      {{"--cluster=c.yaml", "--task=0", "--log-level=loud"},
       "--log-level expects debug, info, warning or error, got 'loud'; try 'psd --help'"},
      {{"--cluster=auto.yaml", "--task=0"},
       "ps/0 has the address a:auto, and only dtf-launch chooses ports: run it, or give a port; "
       "try 'psd --help'"},
  };
  for (const auto& [words, message] : cases) EXPECT_EQ(usageError(JobKind::kPs, words), message);
  const std::string no_value = usageError(JobKind::kPs, {"--cluster"});
  EXPECT_NE(no_value.find("--cluster"), std::string::npos) << no_value;
}

TEST_F(OptionsTest, MistakesOfTheFileKeepTheirOwnReport) {
  EXPECT_EQ(badConfigOf([&] {
              parse(JobKind::kPs, {"--cluster=c.yaml", "--task=0", "--set", "jbo=x"});
            }),
            "--set jbo=x: error: unknown key 'jbo' - did you mean 'job'?");
}

TEST_F(OptionsTest, InsecureIsAKeyOfTheFileAndAFlag) {
  const std::vector<const char*> words = {"--cluster", "c.yaml", "--task", "0"};
  EXPECT_FALSE(parse(JobKind::kPs, words).job.cluster.insecure);
  std::vector<const char*> with_flag = words;
  with_flag.push_back("--insecure");
  EXPECT_TRUE(parse(JobKind::kPs, with_flag).job.cluster.insecure);
  files_.write("c.yaml", "cluster: {ps: [a:1, a:2], worker: [b:1]}\ninsecure: true\n");
  EXPECT_TRUE(parse(JobKind::kPs, words).job.cluster.insecure);
  EXPECT_TRUE(
      parse(JobKind::kPs, {"--ps-hosts=a:1", "--worker-hosts=b:1", "--task-index=0", "--insecure"})
          .job.cluster.insecure);
}

TEST_F(OptionsTest, KeysAreAFolderOfTheFileAndAnOption) {
  const std::vector<const char*> words = {"--cluster", "c.yaml", "--task", "0"};
  EXPECT_TRUE(parse(JobKind::kPs, words).job.cluster.keys.empty());
  std::vector<const char*> with_option = words;
  with_option.push_back("--keys=my/keys");
  const ClusterSpec given = parse(JobKind::kPs, with_option).job.cluster;
  EXPECT_EQ(given.keys.filename(), "keys");
  EXPECT_TRUE(given.mayBeReached());
  EXPECT_FALSE(given.insecure);
  std::filesystem::create_directory("sub");
  files_.write("sub/c.yaml", "cluster: {ps: [a:1, a:2], worker: [b:1]}\nkeys: ../keys\n");
  const std::vector<const char*> of_file = {"--cluster", "sub/c.yaml", "--task", "0"};
  EXPECT_EQ(
      std::filesystem::absolute(parse(JobKind::kPs, of_file).job.cluster.keys).lexically_normal(),
      std::filesystem::absolute("keys"));
}

TEST_F(OptionsTest, AKeyOfTheFileGivenAsAnOptionIsShownAsSet) {
  EXPECT_EQ(usageError(JobKind::kWorker, {"--cluster", "c.yaml", "--steps", "500"}),
            "unknown option '--steps': to change this key of the file, give --set "
            "train.steps=VALUE; try 'workerd --help'");
  EXPECT_EQ(usageError(JobKind::kWorker, {"--batch-size=5"}),
            "unknown option '--batch-size': to change this key of the file, give --set "
            "train.data.batch_size=VALUE; try 'workerd --help'");
}

TEST_F(OptionsTest, EmptyNamesAreAnswered) {
  EXPECT_EQ(usageError(JobKind::kPs, {"--cluster", "", "--task=0"}),
            "the name of the cluster file is empty");
  EXPECT_EQ(badConfigOf([] {
              parse(JobKind::kWorker,
                    {"--ps-hosts=a:1", "--worker-hosts=b:1", "--task-index=0", "--train", ""});
            }),
            "--train : error: expected a map for 'train', got the text ''");
  EXPECT_EQ(usageError(JobKind::kPs, {"--cluster", "c.yaml", "--task", "0", "--run-dir", ""}),
            "--run-dir expects a folder; try 'psd --help'");
}

TEST_F(OptionsTest, ARunDirThatNoShellExpanded) {
  EXPECT_EQ(usageError(JobKind::kPs, {"--cluster", "c.yaml", "--task", "0", "--run-dir=~b/x"}),
            "--run-dir: '~b' is not expanded: write the whole path; try 'psd --help'");
}

}  // namespace dtf::cluster
