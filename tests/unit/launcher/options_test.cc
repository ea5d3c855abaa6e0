#include "launcher/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "common/base/error.h"
#include "tests/support/process.h"

namespace dtf::launcher {

namespace {

Options parse(std::vector<const char*> words) {
  words.insert(words.begin(), "dtf-launch");
  return parseOptions(static_cast<int>(words.size()), words.data());
}

std::string mistake(std::vector<const char*> words) {
  try {
    parse(std::move(words));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    return error.message();
  }
  ADD_FAILURE() << "must throw";
  return "";
}

}  // namespace

TEST(Options, UpIsTheDefaultVerb) {
  const Options options =
      parse({"a.yaml", "--set", "train.steps=5", "--dry-run", "--set", "job=x", "--run-dir", "r"});
  EXPECT_EQ(options.verb, Verb::kUp);
  EXPECT_EQ(options.cluster_file, "a.yaml");
  EXPECT_EQ(options.overrides, (std::vector<std::string>{"train.steps=5", "job=x"}));
  EXPECT_EQ(options.run_dir, "r");
  EXPECT_TRUE(options.dry_run);
  EXPECT_FALSE(options.json);
}

TEST(Options, VerbsAndTheirWords) {
  EXPECT_EQ(parse({"up", "a.yaml"}).verb, Verb::kUp);
  EXPECT_EQ(parse({"check", "a.yaml"}).verb, Verb::kCheck);
  EXPECT_EQ(parse({"explain", "a.yaml"}).verb, Verb::kExplain);
  EXPECT_EQ(parse({"logs", "a.yaml", "ps/0", "worker/1"}).tasks,
            (std::vector<std::string>{"ps/0", "worker/1"}));
  EXPECT_EQ(parse({"./check"}).cluster_file, "./check");
}

TEST(Options, RunsAndCompareHaveNoJob) {
  EXPECT_EQ(parse({"runs"}).verb, Verb::kRuns);
  EXPECT_EQ(parse({"runs", "a", "b"}).runs, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(parse({"compare", "a", "b", "--json"}).runs, (std::vector<std::string>{"a", "b"}));
  EXPECT_THAT(mistake({"compare", "a"}),
              ::testing::HasSubstr("compare expects 2 to 26 runs, got 1"));
  EXPECT_THAT(mistake({"runs", "--set", "job=x"}),
              ::testing::HasSubstr("--set is for jobs, not for the verb 'runs'"));
}

// Data sets lie in folders of such names.
TEST(Options, AFolderNamedAsAVerbOfOtherToolsIsNoJob) {
  const dtf::testing::TemporaryFolder folder;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  std::filesystem::create_directory("train");
  EXPECT_THAT(mistake({"train"}), ::testing::HasSubstr("did you mean 'dtf-launch up'?"));
  std::filesystem::current_path(before);
}

TEST(Options, MistakesSayWhatToDo) {
  EXPECT_THAT(mistake({}), ::testing::HasSubstr("the name of its file is missing"));
  EXPECT_THAT(mistake({"stauts", "a.yaml"}),
              ::testing::HasSubstr("did you mean 'dtf-launch status'?"));
  EXPECT_THAT(mistake({"down", "a.yaml"}), ::testing::HasSubstr("did you mean 'dtf-launch stop'?"));
  EXPECT_THAT(mistake({"train"}), ::testing::HasSubstr("did you mean 'dtf-launch up'?"));
  EXPECT_THAT(mistake({"ps"}), ::testing::HasSubstr("did you mean 'dtf-launch status'?"));
  EXPECT_THAT(mistake({"validate", "a.yaml"}),
              ::testing::HasSubstr("did you mean 'dtf-launch check'?"));
  EXPECT_THAT(mistake({"frobnicate"}), ::testing::HasSubstr("is no verb, and no file of a job;"));
  EXPECT_THAT(mistake({"help", "down"}), ::testing::HasSubstr("did you mean 'dtf-launch stop'?"));
  EXPECT_THAT(mistake({"status", "a.yaml", "-d"}),
              ::testing::HasSubstr("for the verbs 'up', 'serve'"));
  EXPECT_THAT(mistake({"a.yaml", "-f"}), ::testing::HasSubstr("for the verb 'logs'"));
  EXPECT_THAT(mistake({"a.yaml", "-q", "-v"}), ::testing::HasSubstr("exclude each other"));
  EXPECT_THAT(mistake({"a.yaml", "--dryrun"}), ::testing::HasSubstr("did you mean '--dry-run'?"));
  EXPECT_THAT(mistake({"a.yaml", "--color", "red"}),
              ::testing::HasSubstr("auto, always or never, got 'red'"));
  EXPECT_THAT(mistake({"check", "a.yaml", "--dry-run"}),
              ::testing::HasSubstr("for the verbs 'up', 'serve', 'submit', 'graph'"));
  EXPECT_THAT(mistake({"a.yaml", "--bin-dir", ""}),
              ::testing::HasSubstr("--bin-dir expects a folder"));
}

TEST(Options, OfAJobForSlurm) {
  const Options options = parse({"submit", "a.yaml", "--dry-run", "--json"});
  EXPECT_EQ(options.verb, Verb::kSubmit);
  EXPECT_TRUE(options.dry_run);
  EXPECT_THAT(mistake({"sbatch", "a.yaml"}), ::testing::HasSubstr("'dtf-launch submit'"));
  EXPECT_THAT(mistake({"submit", "a.yaml", "--fresh"}), ::testing::HasSubstr("for the verbs 'up'"));
}

TEST(Options, OfAVerbThatUsesACheckpoint) {
  EXPECT_EQ(parse({"eval", "a.yaml"}).verb, Verb::kEval);
  EXPECT_EQ(parse({"eval", "a.yaml", "--checkpoint", "7"}).checkpoint, "7");
  EXPECT_THAT(mistake({"a.yaml", "--checkpoint", "7"}),
              ::testing::HasSubstr("for the verbs 'eval', 'predict', 'export'"));
  const Options predict = parse({"predict", "a.yaml", "--input", "x", "--output", "y.csv"});
  EXPECT_EQ(predict.input, "x");
  EXPECT_EQ(predict.output, "y.csv");
  EXPECT_THAT(mistake({"predict", "a.yaml", "--input", ""}),
              ::testing::HasSubstr("--input expects a file"));
  EXPECT_THAT(mistake({"eval", "a.yaml", "--output", "x"}),
              ::testing::HasSubstr("--output is for the verbs 'predict', 'init'"));
  EXPECT_EQ(parse({"predict", "a.yaml", "--input", "x", "--keep", "id,a", "--keep", "b"}).keep,
            (std::vector<std::string>{"id,a", "b"}));
  EXPECT_EQ(parse({"predict", "a.yaml", "--keep", "id"}).keep, std::vector<std::string>{"id"});
  EXPECT_THAT(mistake({"eval", "a.yaml", "--keep", "id"}),
              ::testing::HasSubstr("--keep is for the verb 'predict'"));
  EXPECT_EQ(parse({"export", "a.yaml", "--to", "m.onnx"}).to, "m.onnx");
  EXPECT_EQ(parse({"import", "a.yaml", "--from", "m.onnx"}).from, "m.onnx");
  EXPECT_EQ(parse({"import", "a.yaml", "--from", "m.npz", "--layout", "pytorch"}).layout,
            model_files::WeightLayout::kPyTorch);
  const Options renamed = parse({"import", "a.yaml", "--from", "m.npz", "--prefix", "net",
                                 "--rename", "a=b", "--rename", "c.=d."});
  EXPECT_EQ(renamed.names.prefix, "net");
  ASSERT_EQ(renamed.names.renames.size(), 2u);
  EXPECT_EQ(renamed.names.renames[1].from, "c.");
  EXPECT_THAT(mistake({"import", "a.yaml", "--rename", "a"}),
              ::testing::HasSubstr("--rename expects FROM=TO"));
  EXPECT_THAT(mistake({"import", "a.yaml", "--prefix", ""}),
              ::testing::HasSubstr("--prefix expects a prefix"));
  EXPECT_THAT(mistake({"export", "a.yaml", "--prefix", "net"}),
              ::testing::HasSubstr("--prefix is for the verb 'import'"));
  EXPECT_EQ(parse({"graph", "a.yaml", "--graph", "g.yaml", "--dry-run"}).graph, "g.yaml");
  const Options traced = parse({"graph", "a.yaml", "--graph", "g.yaml", "--timeline", "t.json"});
  EXPECT_EQ(traced.timeline, "t.json");
  EXPECT_EQ(traced.timeline_step, std::nullopt);
  EXPECT_EQ(
      parse({"graph", "a.yaml", "--timeline", "t.json", "--timeline-step", "7"}).timeline_step, 7u);
  EXPECT_THAT(mistake({"graph", "a.yaml", "--timeline", "t.json", "--dry-run"}),
              ::testing::HasSubstr("--timeline and --dry-run exclude each other"));
  EXPECT_THAT(mistake({"graph", "a.yaml", "--timeline-step", "7"}),
              ::testing::HasSubstr("--timeline-step is for --timeline FILE"));
  EXPECT_THAT(mistake({"graph", "a.yaml", "--timeline", "t.json", "--timeline-step", "0"}),
              ::testing::HasSubstr("must be 1 or more"));
  EXPECT_THAT(mistake({"a.yaml", "--timeline", "t.json"}),
              ::testing::HasSubstr("--timeline is for the verb 'graph'"));
  EXPECT_THAT(mistake({"evaluate", "a.yaml"}),
              ::testing::HasSubstr("did you mean 'dtf-launch eval'?"));
}

TEST(Options, OfAJobThatIsWrittenForData) {
  const Options options = parse({"init", "--data", "t.csv", "--target", "y", "-o", "-", "--force"});
  EXPECT_EQ(options.verb, Verb::kInit);
  EXPECT_EQ(options.data, "t.csv");
  EXPECT_EQ(options.target, "y");
  EXPECT_EQ(options.output, "-");
  EXPECT_TRUE(options.force);
  EXPECT_EQ(parse({"init", "--data=d.npz", "--features=x"}).features, "x");
  EXPECT_EQ(parse({"init", "t.csv", "--target=y"}).data, "t.csv");
  EXPECT_THAT(mistake({"init", "t.csv", "u.csv"}),
              ::testing::HasSubstr("unexpected argument 'u.csv': init describes one set of data"));
  EXPECT_THAT(mistake({"init", "t.csv", "--data", "u.csv"}),
              ::testing::HasSubstr("unexpected argument 't.csv'"));
  EXPECT_THAT(mistake({"init", "--data", "t.csv", "--set", "a=b"}),
              ::testing::HasSubstr("--set is for jobs, not for the verb 'init'"));
  EXPECT_THAT(mistake({"a.yaml", "--data", "t.csv"}),
              ::testing::HasSubstr("--data is for the verb 'init'"));
  EXPECT_THAT(mistake({"new", "--data", "t.csv"}), ::testing::HasSubstr("'dtf-launch init'"));
}

TEST(Options, OfTheKeysOfAJob) {
  const Options init = parse({"keys", "init", "k", "--cluster", "c.yaml", "--days=30"});
  EXPECT_EQ(init.verb, Verb::kKeys);
  EXPECT_EQ(init.key_action, "init");
  EXPECT_EQ(init.key_folder, "k");
  EXPECT_EQ(init.cluster, "c.yaml");
  EXPECT_EQ(init.days, 30u);
  EXPECT_EQ(parse({"keys", "issue", "k", "ps/0", "client"}).tasks,
            (std::vector<std::string>{"ps/0", "client"}));
  EXPECT_EQ(parse({"keys", "init", "k", "--job", "mnist"}).job, "mnist");
  EXPECT_THAT(mistake({"keys"}), ::testing::HasSubstr("expects init, issue, renew or show"));
  EXPECT_THAT(mistake({"keys", "made", "k"}), ::testing::HasSubstr("got 'made'"));
  EXPECT_THAT(mistake({"keys", "show"}), ::testing::HasSubstr("the folder of the keys is missing"));
  EXPECT_THAT(mistake({"keys", "show", "k", "ps/0"}),
              ::testing::HasSubstr("unexpected argument 'ps/0'"));
  EXPECT_THAT(mistake({"keys", "renew", "k", "--job", "x"}),
              ::testing::HasSubstr("is for 'keys init'"));
  EXPECT_THAT(mistake({"keys", "show", "k", "--cluster", "c.yaml"}),
              ::testing::HasSubstr("--cluster is for"));
  EXPECT_THAT(mistake({"keys", "show", "k", "--days", "3"}), ::testing::HasSubstr("--days is for"));
  EXPECT_THAT(mistake({"keys", "init", "k", "--days", "0"}),
              ::testing::HasSubstr("from 1 to 3650"));
  EXPECT_THAT(mistake({"keys", "init", "k", "--set", "a=b"}),
              ::testing::HasSubstr("not for the verb 'keys'"));
  EXPECT_THAT(mistake({"check", "c.yaml", "--days", "3"}),
              ::testing::HasSubstr("--days is for the verb 'keys'"));
}

TEST(Options, LettersOfTheDailyOptions) {
  EXPECT_EQ(parse({"a.yaml", "-q"}).verbosity, Verbosity::kQuiet);
  EXPECT_EQ(parse({"a.yaml", "-v"}).verbosity, Verbosity::kVerbose);
  EXPECT_TRUE(parse({"up", "-d", "a.yaml"}).detach);
  EXPECT_TRUE(parse({"logs", "-f", "a.yaml"}).follow);
  EXPECT_THAT(mistake({"a.yaml", ""}), ::testing::HasSubstr("unexpected argument ''"));
}

TEST(Options, HelpInEveryFormThatPeopleTry) {
  for (const char* word : {"help", "-h", "--help"})
    EXPECT_THAT(*parse({word}).answer, ::testing::HasSubstr("Examples:")) << word;
  EXPECT_THAT(*parse({"help", "stop"}).answer, ::testing::StartsWith("dtf-launch stop"));
  for (const char* verb : {"stop", "predict", "keys"})
    EXPECT_EQ(*parse({"help", verb}).answer, *parse({verb, "--help"}).answer);
  EXPECT_THAT(*parse({"predict", "--help"}).answer,
              ::testing::HasSubstr("\n  --input FILE              IDX, .npy"));
}

TEST(Options, HelpFitsInAHundredColumns) {
  const std::string help = *parse({"--help"}).answer;
  std::istringstream lines(help);
  int verbs = 0;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 100u) << line;
    std::istringstream words(line);
    std::string program, verb;
    words >> program >> verb;
    if (!line.starts_with("  dtf-launch ") || verb == "help" || verb.find('.') != verb.npos)
      continue;
    ++verbs;
    std::istringstream more(*parse({"help", verb.c_str()}).answer);
    for (std::string text; std::getline(more, text);) EXPECT_LE(text.size(), 100u) << text;
  }
  EXPECT_GE(verbs, 14);
}

TEST(Options, HelpHasExamplesAndNeedsNoFile) {
  EXPECT_THAT(*parse({"--help"}).answer, ::testing::HasSubstr("Examples:"));
  EXPECT_THAT(*parse({"--version"}).answer, ::testing::StartsWith("dtf-launch "));
}

}  // namespace dtf::launcher
