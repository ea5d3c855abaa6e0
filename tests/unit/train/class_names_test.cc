#include "common/train/class_names.h"

#include <gtest/gtest.h>

namespace dtf::train {
namespace {

TEST(ClassNames, AreReadBackAsTheyWereWritten) {
  const ClassNames names = {"cat", "a \"dog\"", "line\nend", "\xc3\xa9t\xc3\xa9"};
  EXPECT_EQ(decodeClassNames(encodeClassNames(names)), names);
  EXPECT_EQ(encodeClassNames({"\xc3\xa9"}), R"(["\u00e9"])");
  EXPECT_EQ(encodeClassNames({"\xff"}), R"(["\ufffd"])") << "a folder's name may be any bytes";
  for (const char* const other : {"", "{", "{}", "[1]", "cat"})
    EXPECT_EQ(decodeClassNames(other), ClassNames()) << other;
}

TEST(ClassNames, AClassThatWasAddedIsNamed) {
  EXPECT_EQ(classDifference({"bee", "cow"}, {"bee", "cow"}, "f"), "");
  const std::string advice =
      ": say their order with class_names, or take the folder away that is new";
  EXPECT_EQ(classDifference({"bee", "cow"}, {"ant", "bee", "cow"}, "f"),
            "  class 0 is 'bee' of the 2 that the model was trained on, and 'ant' of the 3 of f" +
                advice);
  EXPECT_EQ(
      classDifference({"bee", "cow"}, {"bee", "cow", "dog"}, "f"),
      "  class 2 is none of the 2 that the model was trained on, and 'dog' of the 3 of f" + advice);
  EXPECT_EQ(
      classDifference({"bee", "cow"}, {"bee"}, "f"),
      "  class 1 is 'cow' of the 2 that the model was trained on, and none of the 1 of f" + advice);
  EXPECT_EQ(classDifference({}, {"bee"}, "f"), "") << "an older checkpoint has none";
  EXPECT_EQ(classDifference({"bee"}, {}, "f"), "") << "nor has an array";
  EXPECT_EQ(classDifference({"\xef\xbf\xbd"}, {"\xff"}, "f"), "") << "as it was written";
}

}  // namespace
}  // namespace dtf::train
