#include "common/yaml/home_path.h"

#include <gtest/gtest.h>

#include "tests/unit/yaml/scoped_env.h"

namespace dtf::yaml {
namespace {

// Returns `path` expanded; sets `wrong` to the error.
std::string expanded(std::string path, std::string& wrong) {
  wrong = expandHome(path);
  return path;
}

TEST(HomePath, ATildeStandsForHome) {
  const ScopedEnv home("HOME", "/home/me");
  std::string wrong;
  EXPECT_EQ(expanded("~/runs/a", wrong), "/home/me/runs/a");
  EXPECT_EQ(expanded("~", wrong), "/home/me");
  EXPECT_EQ(wrong, "");
}

TEST(HomePath, OnlyAtTheBeginning) {
  const ScopedEnv home("HOME", "/home/me");
  std::string wrong;
  for (const char* const path : {"./~/a", "a/~/b", "/~", "", "a~"}) {
    EXPECT_EQ(expanded(path, wrong), path);
    EXPECT_EQ(wrong, "");
  }
}

TEST(HomePath, AnothersHomeIsNotExpanded) {
  std::string wrong;
  EXPECT_EQ(expanded("~you/a", wrong), "~you/a") << "it stays as it is";
  EXPECT_EQ(wrong, "'~you' is not expanded: write the whole path");
}

TEST(HomePath, AHomeThatIsNotSetOrNoPathIsRefused) {
  for (const char* const home : {static_cast<const char*>(nullptr), "", "me"}) {
    const ScopedEnv set("HOME", home);
    std::string wrong;
    EXPECT_EQ(expanded("~/a", wrong), "~/a");
    EXPECT_EQ(wrong, "'~' stands for HOME, which is not set: write the whole path");
  }
}

}  // namespace
}  // namespace dtf::yaml
