// The program of the end-to-end tests. Each file of tests is one Meson test, so that they run side
// by side: `e2e --file resume` runs the tests of resume_test.cc.

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <cstdio>
#include <string>
#include <string_view>

namespace {

// The tests of tests/e2e/<name>_test.cc as a filter of googletest; empty: there are none.
std::string testsOf(std::string_view name) {
  const std::string ending = "/" + std::string(name) + "_test.cc";
  std::string filter;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int k = 0; k < suite.total_test_count(); ++k) {
      const testing::TestInfo& test = *suite.GetTestInfo(k);
      if (std::string_view(test.file()).ends_with(ending))
        filter += std::string(filter.empty() ? "" : ":") + suite.name() + "." + test.name();
    }
  }
  return filter;
}

// Processor time of this process and of its children that have ended and were waited for.
double processorSeconds() {
  double seconds = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage used{};
    ::getrusage(who, &used);
    for (const timeval& time : {used.ru_utime, used.ru_stime})
      seconds += static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  }
  return seconds;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  const bool has_file = argc == 3 && std::string_view(argv[1]) == "--file";
  if (argc > 1 && !has_file) {
    std::fprintf(stderr, "usage: %s [--file NAME] [googletest's options]\n", argv[0]);
    return 2;
  }
  if (has_file && GTEST_FLAG_GET(filter) == "*") {
    const std::string filter = testsOf(argv[2]);
    if (filter.empty()) {
      std::fprintf(stderr, "%s: no test of %s_test.cc is in this program\n", argv[0], argv[2]);
      return 2;
    }
    GTEST_FLAG_SET(filter, filter);
  }
  const int status = RUN_ALL_TESTS();
  std::printf("%.1f s of a core\n", processorSeconds());
  return status;
}
