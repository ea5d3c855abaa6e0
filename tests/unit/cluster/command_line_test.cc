#include "common/cluster/command_line.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "common/base/error.h"

namespace dtf::cluster {
namespace {

using Words = std::vector<const char*>;

CommandLine lineOf(Words words, size_t positionals_max = 0) {
  words.insert(words.begin(), "dtf-launch");
  return {"dtf-launch", commonOptions(), positionals_max, static_cast<int>(words.size()),
          words.data()};
}
// Returns the message of the kUsage error that `action` throws.
template <class Action>
std::string usageError(Action action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    return error.message();
  }
  return "no error";
}
std::string refusal(const Words& words, size_t positionals_max = 0) {
  return usageError([&] { lineOf(words, positionals_max); });
}

TEST(CommandLine, TakesTheWordsOfAVerb) {
  const CommandLine line = lineOf({"check", "a_b.yaml", "--run_dir=r_d"}, 2);
  EXPECT_EQ(line.positionals(), (std::vector<std::string>{"check", "a_b.yaml"}));
  EXPECT_EQ(line.value("run-dir"), "r_d") << "an underscore of the value stays";
  EXPECT_THROW(lineOf({"check", "a_b.yaml"}, 1), Error);
}

TEST(CommandLine, ARepeatableOptionKeepsItsOrderAndOthersComeOnce) {
  const CommandLine line = lineOf({"--set", "a=1", "--insecure", "--set=b=2"});
  EXPECT_EQ(line.values("set"), (std::vector<std::string>{"a=1", "b=2"}));
  EXPECT_TRUE(line.has("insecure"));
  EXPECT_EQ(line.value("insecure"), std::nullopt) << "a switch has no value";
  EXPECT_NE(refusal({"--run-dir=a", "--run-dir=b"}).find("--run-dir is given twice"),
            std::string::npos);
}

TEST(CommandLine, MisspeltOptionsAreAnsweredByTheNearest) {
  EXPECT_EQ(refusal({"--run-dri", "x"}),
            "unknown option '--run-dri' - did you mean '--run-dir'? try 'dtf-launch --help'");
  EXPECT_NE(refusal({"--steps", "500"})
                .find("to change this key of the file, give --set train.steps=VALUE"),
            std::string::npos)
      << "as other trainers have it";
  EXPECT_NE(refusal({"--run"}).find("unknown option"), std::string::npos) << "no abbreviations";
}

TEST(CommandLine, KeysAndInsecureAreShortForASet) {
  const std::vector<std::string> overrides =
      lineOf({"--insecure", "--keys", "my/keys", "--set", "a=1"}).overrides();
  EXPECT_EQ(overrides,
            (std::vector<std::string>{
                "a=1", "keys=" + std::filesystem::absolute("my/keys").string(), "insecure=true"}));
}

TEST(CommandLine, ValuesAreCheckedWhenTheyAreAskedFor) {
  const OptionDef options[] = {{"task", "N", "which"}};
  const auto index = [&](const char* text) {
    const char* words[] = {"psd", "--task", text};
    return CommandLine("psd", options, 0, 3, words).index("task");
  };
  EXPECT_EQ(index("4294967295"), 4294967295u);
  for (const char* const text : {"4294967296", "1x", "", "0x1"})
    EXPECT_NE(usageError([&] { index(text); }).find("expects a whole number from 0 on"),
              std::string::npos)
        << text;
  EXPECT_EQ(lineOf({"--log-level", "warning"}).logLevel(), log::Level::kWarning);
  EXPECT_NE(usageError([] {
              lineOf({"--log-level", "loud"}).logLevel();
            }).find("got 'loud'"),
            std::string::npos);
  EXPECT_NE(usageError([] { lineOf({}).folder("run-dir", ""); }).find("--run-dir expects a folder"),
            std::string::npos);
}

TEST(CommandLine, HelpIsWrappedBesideItsOptions) {
  const OptionDef options[] = {
      {"short", "", "a switch"},
      {"long", "WORD",
       "of many words that go on and on, and so on to the end of the line and over"}};
  EXPECT_EQ(
      optionHelp(options),
      "  --short                   a switch\n"
      "  --long WORD               of many words that go on and on, and so on to the end of the "
      "line and\n"
      "                            over\n");
  EXPECT_EQ(lineOf({"-h"}).answer("the help"), "the help");
  EXPECT_EQ(lineOf({"-V"}).answer(""), "dtf-launch " DTF_VERSION "\n");
  EXPECT_EQ(lineOf({}).answer("the help"), std::nullopt);
}

}  // namespace
}  // namespace dtf::cluster
