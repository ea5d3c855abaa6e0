#include "common/data/csv_classes.h"

#include <gtest/gtest.h>

namespace dtf::data {
namespace {

TEST(ClassReader, NumbersAndBooleansAreClasses) {
  const cluster::CsvSpec spec;
  ClassReader reader(spec, false);
  EXPECT_EQ(reader.find("3"), 3);
  EXPECT_EQ(reader.find("1.0"), 1);
  EXPECT_EQ(reader.find("True"), 1);
  EXPECT_EQ(reader.find("no"), 0);
  EXPECT_EQ(reader.find("-1"), std::nullopt);
  EXPECT_EQ(reader.find("cat"), std::nullopt);
  EXPECT_EQ(reader.faultOf("cat").find("is no class, a whole number from 0"), 0u);
}

TEST(ClassReader, WordsOfAListAreClassesInItsOrder) {
  cluster::CsvSpec spec;
  spec.class_names = {"dog", "cat"};
  ClassReader reader(spec, false);
  EXPECT_EQ(reader.find("cat"), 1);
  EXPECT_EQ(reader.find("0"), std::nullopt);
  EXPECT_EQ(reader.faultOf("cot"), "is none of the class_names - did you mean 'cat'?");
}

TEST(ClassReader, NewWordsAreClassesOnlyWhileTheyAreLearned) {
  cluster::CsvSpec spec;
  spec.learns_classes = true;
  ClassReader learning(spec, true);
  EXPECT_EQ(learning.find("b"), 0);
  EXPECT_EQ(learning.find("a"), 1);
  EXPECT_EQ(learning.find(" b "), 0);
  EXPECT_EQ(learning.find("2.0"), 2);
  EXPECT_EQ(learning.find("2"), 2);
  for (const char* missing : {"", "NA", "?"}) EXPECT_EQ(learning.find(missing), std::nullopt);
  EXPECT_EQ(learning.names(), (std::vector<std::string>{"b", "a", "2"}));

  spec.learned.emplace().class_names = {"2", "a", "b"};
  ClassReader reader(spec, false);
  EXPECT_EQ(reader.find("b"), 2);
  EXPECT_EQ(reader.find("2.0"), 0);
  EXPECT_EQ(reader.find("c"), std::nullopt);
  EXPECT_EQ(reader.faultOf("c"), "is none of the classes of the training data");
}

}  // namespace
}  // namespace dtf::data
