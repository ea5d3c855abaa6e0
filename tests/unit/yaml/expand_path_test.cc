#include "common/yaml/expand_path.h"

#include <gtest/gtest.h>

#include "tests/unit/yaml/scoped_env.h"

namespace dtf::yaml {
namespace {

// Returns `path` expanded; sets `wrong` to the error.
std::string expanded(std::string path, std::string& wrong) {
  wrong = expandPath(path);
  return path;
}

TEST(ExpandPath, ATildeStandsForHome) {
  const ScopedEnv home("HOME", "/home/me");
  std::string wrong;
  EXPECT_EQ(expanded("~/runs/a", wrong), "/home/me/runs/a");
  EXPECT_EQ(expanded("~", wrong), "/home/me");
  EXPECT_EQ(wrong, "");
}

TEST(ExpandPath, OnlyAtTheBeginning) {
  const ScopedEnv home("HOME", "/home/me");
  std::string wrong;
  for (const char* const path : {"./~/a", "a/~/b", "/~", "", "a~"}) {
    EXPECT_EQ(expanded(path, wrong), path);
    EXPECT_EQ(wrong, "");
  }
}

TEST(ExpandPath, AnothersHomeIsNotExpanded) {
  std::string wrong;
  EXPECT_EQ(expanded("~you/a", wrong), "~you/a") << "it stays as it is";
  EXPECT_EQ(wrong, "'~you' is not expanded: write the whole path");
}

TEST(ExpandPath, AHomeThatIsNotSetOrNoPathIsRefused) {
  for (const char* const home : {static_cast<const char*>(nullptr), "", "me"}) {
    const ScopedEnv set("HOME", home);
    std::string wrong;
    EXPECT_EQ(expanded("~/a", wrong), "~/a");
    EXPECT_EQ(wrong, "'~' stands for HOME, which is not set: write the whole path");
  }
}

TEST(ExpandPath, TakesVariablesOfTheEnvironment) {
  const ScopedEnv home("HOME", "/home/me");
  const ScopedEnv data("DTF_TEST_DATA", "/data/${HOME}");
  std::string wrong;
  EXPECT_EQ(expanded("~/a/${HOME}/${HOME}b", wrong), "/home/me/a//home/me//home/meb");
  EXPECT_EQ(expanded("${DTF_TEST_DATA}/x", wrong), "/data/${HOME}/x") << "a value is not expanded";
  EXPECT_EQ(expanded("$HOME/a{b}", wrong), "$HOME/a{b}") << "a plain name";
  EXPECT_EQ(wrong, "");
}

TEST(ExpandPath, RefusesVariablesThatAreNotSet) {
  const ScopedEnv unset("DTF_TEST_DATA", nullptr);
  std::string wrong;
  EXPECT_EQ(expanded("a/${DTF_TEST_DATA}/x", wrong), "a/${DTF_TEST_DATA}/x");
  EXPECT_EQ(
      wrong,
      "'${DTF_TEST_DATA}' is not set in the environment of this process: set it, or write the "
      "whole path");
  EXPECT_EQ(expanded("${DTF", wrong), "${DTF");
  EXPECT_EQ(wrong, "'${DTF' has no closing '}': write ${NAME}");
  expanded("${}", wrong);
  EXPECT_NE(wrong, "");
}

}  // namespace
}  // namespace dtf::yaml
