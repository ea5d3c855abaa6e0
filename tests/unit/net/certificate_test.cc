#include "common/net/certificate.h"

#include <gmock/gmock.h>

#include "common/base/error.h"
#include "common/base/file.h"
#include "tests/unit/net/key_fixture.h"

namespace dtf::net::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

TEST(Certificate, NamesJobAndTask) {
  JobKeys job("a.b-c_9");
  job.folder().issue("client", "", {});
  const Certificate certificate =
      certificateOfPem(readFile(job.path() / "client.pem", 64 << 10), "client.pem");
  EXPECT_EQ(nameOf(*certificate), (CertifiedName{"a.b-c_9", "client"}));
  EXPECT_EQ(nameOf(*certificate)->uri(), "dtf://a.b-c_9/client");
  EXPECT_FALSE(hasExpired(*certificate));
  EXPECT_THAT(endOf(*certificate), MatchesRegex("20..-..-.. ..:.. UTC"));
  EXPECT_LT(startOf(*certificate), endOf(*certificate));
}

TEST(Certificate, NamesThatWouldMeanSomethingElseAreNone) {
  EXPECT_TRUE(isTaskName("ps/0") && isTaskName("worker/4294967295") && isTaskName("client"));
  for (const char* name : {"", "ps", "ps/", "ps/00", "ps/1/2", "ps/4294967296", "worker/ 1", "ca"})
    EXPECT_FALSE(isTaskName(name)) << name;
  EXPECT_TRUE(isCertifiedJobName("mnist-softmax"));
  for (const char* name : {"", "a/b", "a b", "a,b", "\xc3\xa4"})
    EXPECT_FALSE(isCertifiedJobName(name)) << name;
  EXPECT_FALSE(isCertifiedJobName(std::string(129, 'a')));
}

TEST(Certificate, AFileThatIsNoneIsNamed) {
  const auto messageOf = [](auto action) -> std::string {
    try {
      action();
    } catch (const Error& error) {
      return error.message();
    }
    return "no error";
  };
  EXPECT_THAT(messageOf([] { certificateOfPem("junk", "x.pem"); }),
              HasSubstr("x.pem has no certificate: "));
  EXPECT_THAT(messageOf([] { keyOfPem("junk", "x.pem"); }),
              HasSubstr("x.pem has no private key: "));
}

}  // namespace
}  // namespace dtf::net::testing
