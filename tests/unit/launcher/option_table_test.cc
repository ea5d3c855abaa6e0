#include "launcher/option_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace dtf::launcher {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string helpOfVerb(const char* name) {
  return helpOf(*verbNamed(name));
}

TEST(OptionTable, EveryOptionHasAVerbAndATextInTheHelpOfEach) {
  std::set<std::string_view> names, letters;
  for (const LaunchOption& option : launchOptions()) {
    EXPECT_TRUE(names.insert(option.name).second) << option.name << " twice";
    EXPECT_TRUE(option.letter.empty() || letters.insert(option.letter).second) << option.letter;
    int listed = 0;
    for (const VerbInfo& info : allVerbs()) {
      const bool is_listed =
          helpOf(info).find("\n  --" + std::string(option.name) + " ") != std::string::npos;
      if (!option.isForAll()) {
        EXPECT_EQ(is_listed, option.isFor(info.verb)) << option.name << " of " << info.name;
      }
      listed += is_listed ? 1 : 0;
    }
    EXPECT_GT(listed, 0) << option.name;
  }
}

TEST(OptionTable, TheHelpOfAVerbSaysWhatItsOptionsMeanForIt) {
  EXPECT_THAT(helpOfVerb("init"), StartsWith("dtf-launch init FILE"));
  EXPECT_THAT(helpOfVerb("init"), HasSubstr("  --output FILE             -o: the job's file, - is "
                                            "stdout\n"));
  EXPECT_THAT(helpOfVerb("predict"), HasSubstr("-o: write FILE.txt"));
  EXPECT_THAT(helpOfVerb("graph"), HasSubstr("drop the variables"));
  EXPECT_THAT(helpOfVerb("graph"), Not(HasSubstr("checkpoints.old-N")));
  EXPECT_THAT(helpOfVerb("keys"), HasSubstr("keys init, issue: keys for the job"));
}

TEST(OptionTable, OnlyVerbsOfAJobHaveTheOptionsOfOne) {
  for (const char* verb : {"up", "check", "predict"})
    EXPECT_THAT(helpOfVerb(verb), HasSubstr("\n  --set KEY=VALUE ")) << verb;
  for (const char* verb : {"runs", "compare", "init", "keys"})
    EXPECT_THAT(helpOfVerb(verb), Not(HasSubstr("\n  --set"))) << verb;
}

// scripts/completion*.py read the verbs of an option there.
TEST(OptionTable, TheHelpOfTheProgramNamesTheVerbsOfAnOption) {
  const std::string help = cluster::optionHelp(optionDefs());
  EXPECT_THAT(help, HasSubstr("  --detach                  -d: up, serve: return once"));
  EXPECT_THAT(help, HasSubstr("up: start anew; old checkpoints become checkpoints.old-N"));
  EXPECT_THAT(help, HasSubstr("\n  --run-dir DIR "));
}

}  // namespace
}  // namespace dtf::launcher
