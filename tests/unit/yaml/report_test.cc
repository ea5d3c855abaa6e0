#include "common/yaml/report.h"

#include <gtest/gtest.h>

#include "common/base/error.h"
#include "common/yaml/error_at.h"
#include "tests/support/temporary_files.h"

namespace dtf::yaml {

using testing::badConfigOf;

namespace {

std::string shown(const std::string& text, int line, int column, const std::string& message) {
  Report report;
  const int source = report.addFile("f.yaml", text);
  report.error({source, line, column}, message);
  return badConfigOf([&] { report.throwIfAny(); });
}

}  // namespace

TEST(Report, ThrowsNothingWhenThereIsNothingToSay) {
  EXPECT_NO_THROW(Report().throwIfAny());
}

TEST(Report, ShowsTheLineWithACaretUnderTheWholeWord) {
  EXPECT_EQ(shown("a: 1\ncluster:\n  wrokers: [x:1]\n", 3, 3, "bad"),
            "f.yaml:3:3: error: bad\n"
            "  3 |   wrokers: [x:1]\n"
            "    |   ^~~~~~~");
}

TEST(Report, CountsCharactersNotBytesAndKeepsTabs) {
  EXPECT_EQ(shown("k\xC3\xB6\tname: v\r\n", 1, 5, "bad"),
            "f.yaml:1:5: error: bad\n"
            "  1 | k\xC3\xB6\tname: v\n"
            "    |   \t^~~~");
}

TEST(Report, UnderlinesAQuotedTextWhole) {
  EXPECT_EQ(shown("a: \"x, y\" # c", 1, 4, "bad"),
            "f.yaml:1:4: error: bad\n"
            "  1 | a: \"x, y\" # c\n"
            "    |    ^~~~~~");
}

TEST(Report, CutsLongLinesAroundTheColumn) {
  const std::string message =
      shown(std::string(100'000, 'x') + " y" + std::string(1000, 'z'), 1, 100'002, "bad");
  EXPECT_LT(message.size(), 400u);
  EXPECT_NE(message.find("x y"), std::string::npos) << message;
}

TEST(Report, SurvivesPlacesOutsideOfTheText) {
  EXPECT_NE(shown("", 7, 300, "bad"), "no error");
  EXPECT_NE(shown("abc", 1, 4, "bad"), "no error");
  EXPECT_NE(shown("abc", 2, 1, "bad"), "no error");
}

TEST(Report, SortsByPlaceDropsRepeatsAndShowsTwenty) {
  Report report;
  const int source = report.addFile("f.yaml", "");
  for (int line = 30; line >= 1; --line) {
    report.error({source, line, 1}, "m" + std::to_string(line));
    report.error({source, line, 1}, "m" + std::to_string(line));
  }
  const std::string message = badConfigOf([&] { report.throwIfAny(); });
  EXPECT_EQ(message.find("f.yaml:1:1: error: m1\n"), 0u);
  EXPECT_LT(message.find("error: m2\n"), message.find("error: m3\n"));
  EXPECT_NE(message.find("error: m20\n"), std::string::npos);
  EXPECT_EQ(message.find("error: m21\n"), std::string::npos);
  EXPECT_TRUE(message.ends_with("\nand 10 more")) << message;
}

// Programs print a message with a place as it is, and any other one after their name.
TEST(Report, AnErrorHasAPlaceWhereAFileOrAFlagIsWrong) {
  Report report;
  report.error({report.addFile("f.yaml", "a: 1\n"), 1, 1}, "no such key");
  EXPECT_THROW(
      {
        try {
          report.throwIfAny();
        } catch (const Error& error) {
          EXPECT_TRUE(error.has(ErrorTrait::kHasPlace));
          throw;
        }
      },
      Error);
  const Error in_a_file = ErrorAt(ErrorCode::kBadConfig, {"f.yaml", 1, 1}, "no such key");
  EXPECT_TRUE(in_a_file.has(ErrorTrait::kHasPlace));
  const Error of_a_default = ErrorAt(ErrorCode::kBadConfig, {}, "no such key");
  EXPECT_FALSE(of_a_default.has(ErrorTrait::kHasPlace));
  EXPECT_FALSE(Error(ErrorCode::kBadConfig, "f.yaml: error: ...").has(ErrorTrait::kHasPlace));
}

TEST(Report, AMistakeFoundLaterIsShownWhereItsMarkSays) {
  Report report;
  const int flag = report.addFlag("--set a=1");
  const int file = report.addFile("f.yaml", "a: 1\nb: 2\n");
  for (const Place& place : {Place{flag}, Place{file}, Place{file, 2, 4}}) {
    const Place back = report.placeOf(report.markOf(place));
    EXPECT_EQ(std::tie(back.source, back.line, back.column),
              std::tie(place.source, place.line, place.column));
  }
  EXPECT_EQ(report.markOf({flag}).str(), "--set a=1");
  report.error(report.placeOf({"f.yaml", 2, 4}), "two is too much");
  EXPECT_EQ(badConfigOf([&] { report.throwIfAny(); }),
            "f.yaml:2:4: error: two is too much\n  2 | b: 2\n    |    ^");
  EXPECT_DEATH(report.placeOf({"g.yaml", 1, 1}), "g.yaml:1:1");
}

TEST(Report, WarnsWithoutThrowing) {
  Report report;
  const int file = report.addFile("f.yaml", "a: 1\nb: 2\n");
  EXPECT_EQ(report.warnings(), "");
  report.warning({file, 2, 1}, "hardly meant");
  report.warning({file, 1, 1}, "nor this");
  report.throwIfAny();
  EXPECT_EQ(report.warnings(),
            "f.yaml:1:1: warning: nor this\n  1 | a: 1\n    | ^\n"
            "f.yaml:2:1: warning: hardly meant\n  2 | b: 2\n    | ^\n");
}

TEST(Report, WarnsOfTheSameInOneFileOnce) {
  Report report;
  const int first = report.addFile("f.yaml", "a: 1\nb: 2\n"),
            second = report.addFile("g.yaml", "a");
  report.warning({first, 2, 1}, "an old name");
  report.warning({first, 1, 1}, "an old name");
  report.warning({second, 1, 1}, "an old name");
  EXPECT_EQ(report.warningTexts(),
            (std::vector<std::string>{"f.yaml:1:1: warning: an old name\n  1 | a: 1\n    | ^",
                                      "g.yaml:1:1: warning: an old name\n  1 | a\n    | ^"}));
}

TEST(Report, TheFileIsToBeEditedBeforeItsDataAreLookedAt) {
  Report report;
  const int file = report.addFile("f.yaml", "a: 1\nb: 2\n");
  const auto code = [&report] {
    try {
      report.throwIfAny();
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kInternal;
  };
  report.error({file, 2, 1}, "no such file", ErrorCode::kBadData);
  report.error({file, 1, 1}, "not yours", ErrorCode::kPermission);
  EXPECT_EQ(code(), ErrorCode::kPermission) << "the first in the file";
  report.error({file, 2, 1}, "no such key");
  EXPECT_EQ(code(), ErrorCode::kBadConfig);
}

TEST(Report, QuotesWithoutControlCharacters) {
  EXPECT_EQ(inQuotes("a\x1b[31m\n"), "'a\\x1b[31m\\n'");
  EXPECT_EQ(inQuotes(std::string(100, 'a')), "'" + std::string(80, 'a') + "...'");
}

}  // namespace dtf::yaml
