#include "launcher/verbs.h"

#include <gtest/gtest.h>

#include <set>

namespace dtf::launcher {

TEST(Verbs, HaveANameEach) {
  std::set<std::string_view> names;
  for (const VerbInfo& info : allVerbs()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name << " twice";
    EXPECT_EQ(verbNamed(info.name), &info);
    EXPECT_EQ(nameOf(info.verb), info.name);
  }
  EXPECT_EQ(verbNamed("down"), nullptr);
}

TEST(Verbs, AreFoundByWordsOfOtherToolsAndByMisspellings) {
  EXPECT_EQ(verbNear("down"), "stop");
  EXPECT_EQ(verbNear("evaluate"), "eval");
  EXPECT_EQ(verbNear("train"), "up");
  EXPECT_EQ(verbNear("ls"), "runs");
  EXPECT_EQ(verbNear("expord"), "export");
  EXPECT_EQ(verbNear("zzzzzz"), "");
}

}  // namespace dtf::launcher
