#include "daemons/workerd/replaced_ps.h"

#include <gtest/gtest.h>

namespace dtf::workerd {
namespace {

TEST(ReplacedPs, ALossBeforeTheValuesCostsNothing) {
  ReplacedPs replaced;
  EXPECT_TRUE(replaced.add());
  replaced.beginDecision();
  EXPECT_TRUE(replaced.endDecision());
}

TEST(ReplacedPs, ALossDuringTheDecisionMakesAnother) {
  ReplacedPs replaced;
  replaced.beginDecision();
  EXPECT_TRUE(replaced.add());
  EXPECT_FALSE(replaced.endDecision());
  replaced.beginDecision();
  EXPECT_TRUE(replaced.endDecision());
}

TEST(ReplacedPs, ALossBehindTheDecisionIsFinal) {
  ReplacedPs replaced;
  replaced.beginDecision();
  EXPECT_TRUE(replaced.endDecision());
  EXPECT_FALSE(replaced.add());
}

}  // namespace
}  // namespace dtf::workerd
