#include <gmock/gmock.h>

#include "tests/unit/launcher/verb_fixture.h"

namespace dtf::launcher {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class KeysCommand : public VerbTest {
 protected:
  KeysCommand() { options_.key_folder = std::filesystem::path(folder_.path()) / "keys"; }
  std::string act(const char* action, std::vector<std::string> tasks = {}) {
    options_.key_action = action;
    options_.tasks = std::move(tasks);
    return printed([this] { return keys(options_); });
  }
  std::string refused(ErrorCode code, const char* action) {
    options_.key_action = action;
    return refusal(code, [this] { return keys(options_); });
  }
};

TEST_F(KeysCommand, AFolderBeginsWithTheClientsKey) {
  options_.job = "tiny";
  EXPECT_THAT(act("init"), AllOf(HasSubstr("1 keys of job 'tiny'"), HasSubstr("client"),
                                 HasSubstr(" until "), Not(HasSubstr("worker/0"))));
}

TEST_F(KeysCommand, AClusterFileNamesJobAndTasks) {
  options_.cluster = options_.cluster_file;
  EXPECT_THAT(act("init"),
              AllOf(HasSubstr("2 keys of job 'tiny'"), HasSubstr("worker/0"), HasSubstr("client")));
  options_.cluster.reset();
  EXPECT_THAT(act("issue", {"ps/7"}), AllOf(HasSubstr("ps/7"), Not(HasSubstr("worker/0"))));
  EXPECT_THAT(act("show"), AllOf(HasSubstr("4 keys"), HasSubstr("ca"), HasSubstr("ps/7"),
                                 HasSubstr("worker/0")));
  EXPECT_THAT(act("renew"), HasSubstr("3 keys"));
}

TEST_F(KeysCommand, TheJobIsSaidOnceAndForAll) {
  EXPECT_THAT(refused(ErrorCode::kUsage, "init"), HasSubstr("the name of the job is missing"));
  options_.job = "other";
  options_.cluster = options_.cluster_file;
  EXPECT_THAT(refused(ErrorCode::kUsage, "init"), HasSubstr("--job other differs from the job of"));
  options_.cluster.reset();
  act("init");
  options_.cluster = options_.cluster_file;
  EXPECT_THAT(refused(ErrorCode::kUsage, "issue"), HasSubstr("is of job 'other', but"));
  options_.cluster.reset();
  EXPECT_THAT(refused(ErrorCode::kUsage, "issue"), HasSubstr("no task is named"));
}

}  // namespace
}  // namespace dtf::launcher
