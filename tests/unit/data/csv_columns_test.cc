#include "common/data/csv_columns.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/base/error.h"

namespace dtf::data {
namespace {

using Names = std::vector<std::string>;
using Places = std::vector<size_t>;

const Names kNames = {"age", "user", "click", "tag1", "tag2", "price"};

cluster::CsvSpec withCategories() {
  cluster::CsvSpec spec;
  spec.label = "click";
  spec.categorical = {{"user", {"user"}, 100}, {"tags", {"tag1", "5"}, 10}};
  return spec;
}

std::string mistakeOf(const cluster::CsvSpec& spec) {
  try {
    chooseColumns("t.csv", kNames, spec);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
    return error.message();
  }
  return "";
}

TEST(CsvColumns, WhatIsNeitherLabelNorCategoryIsAFeature) {
  const CsvColumns columns = chooseColumns("t.csv", kNames, withCategories());
  EXPECT_EQ(columns.label, 2u);
  EXPECT_EQ(columns.features, (Places{0, 5}));
  EXPECT_EQ(columns.categories, (std::vector<Places>{{1}, {3, 4}}));
}

TEST(CsvColumns, FeaturesMayBeNamedOrNone) {
  cluster::CsvSpec spec = withCategories();
  spec.features = {"price"};
  EXPECT_EQ(chooseColumns("t.csv", kNames, spec).features, (Places{5}));
  spec.features = {};
  spec.no_features = true;
  EXPECT_EQ(chooseColumns("t.csv", kNames, spec).features, Places{});
}

TEST(CsvColumns, ColumnsAreNamedByNamesNumbersAndListsOfThem) {
  const CsvColumns columns{{"id", "a, b", "age"}, {}, {}, {}, {}};
  EXPECT_EQ(namedColumns("t.csv", columns, Names{"age,id"}), (Places{2, 0}));
  EXPECT_EQ(namedColumns("t.csv", columns, Names{"a, b", "3"}), (Places{1, 2}));
  EXPECT_EQ(namedColumns("t.csv", columns, Names{"age, id", "age"}), (Places{2, 0})) << "each once";
  EXPECT_TRUE(namedColumns("t.csv", columns, {}).empty());
  for (const char* wrong : {"ids", "4", "id,"}) {
    try {
      namedColumns("t.csv", columns, Names{wrong});
      ADD_FAILURE() << wrong;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
      EXPECT_NE(error.message().find("': the columns are id, a, b, age"), std::string::npos)
          << error.message();
    }
  }
}

TEST(CsvColumns, AColumnIsReadOnce) {
  cluster::CsvSpec spec = withCategories();
  spec.features = {"user"};
  EXPECT_EQ(mistakeOf(spec), "t.csv: column 'user' is listed twice");
  spec = withCategories();
  spec.categorical[0].columns = {"click"};
  EXPECT_EQ(mistakeOf(spec), "t.csv: column 'click' is listed twice");
  spec.categorical[0].columns = {"usr"};
  EXPECT_EQ(mistakeOf(spec), "t.csv: there is no column 'usr' among 6 - did you mean 'user'?");
}

TEST(CsvColumns, AllThatAreMissingAreFoundEachAtItsPlace) {
  cluster::CsvSpec spec = withCategories();
  spec.label = "clik";
  spec.features = {"age", "prise"};
  spec.categorical[0].columns = {"user", "usr"};
  spec.column_marks = {{"clik", {"job.yaml", 3, 5}}, {"usr", {"job.yaml", 9, 7}}};
  const std::vector<yaml::ErrorAt> missing = missingColumns("t.csv", kNames, spec);
  ASSERT_EQ(missing.size(), 3u);
  EXPECT_EQ(
      missing[0].message(),
      "job.yaml:3:5: error: t.csv: there is no column 'clik' among 6 - did you mean 'click'?");
  EXPECT_EQ(missing[1].mark().line, 9);
  EXPECT_EQ(missing[2].reason(),
            "t.csv: there is no column 'prise' among 6 - did you mean 'price'?");
  EXPECT_EQ(mistakeOf(spec), missing[0].message());
}

TEST(CsvColumns, OfManyColumnsTheNearestIsNamed) {
  std::vector<std::string> names = {"kind"};
  for (int i = 0; i < 1000; ++i) names.push_back("pixel_" + std::to_string(i));
  cluster::CsvSpec spec;
  spec.label = "knid";
  EXPECT_EQ(missingColumns("t.csv", names, spec).at(0).reason(),
            "t.csv: there is no column 'knid' among 1001 - did you mean 'kind'?");
  spec.label = "target";
  EXPECT_EQ(missingColumns("t.csv", names, spec).at(0).reason(),
            "t.csv: there is no column 'target' among 1001");
}

TEST(CsvColumns, CategoriesAloneAreToBeSaid) {
  cluster::CsvSpec spec = withCategories();
  spec.categorical.push_back({"rest", {"age", "price"}, 10});
  EXPECT_EQ(mistakeOf(spec),
            "t.csv: no column is left for the features: where categorical columns are all there "
            "is, say 'feature_columns: []'");
}

TEST(CsvColumns, ATableToPredictOfIsReadByTheNamesOfTheTrainingData) {
  const TrainedColumns trained{{"age", "price"}, {{"user"}, {"tag1", "tag2"}}};
  const CsvColumns columns =
      chooseTrained("p.csv", {"tag2", "tag1", "price", "user", "age"}, trained);
  EXPECT_EQ(columns.features, (Places{4, 2}));
  EXPECT_EQ(columns.categories, (std::vector<Places>{{3}, {1, 0}}));
  const auto refusal = [&trained](const std::vector<std::string>& names) -> std::string {
    try {
      chooseTrained("p.csv", names, trained);
    } catch (const Error& error) {
      return error.message();
    }
    return "";
  };
  EXPECT_EQ(refusal({"tag1", "price", "user", "age"}),
            "p.csv: it has no column 'tag2', which the model is trained on; its columns are tag1, "
            "price, user, age");
  EXPECT_EQ(refusal({"tag1", "cost", "age"}),
            "p.csv: it has no columns 'price', 'user', 'tag2', which the model is trained on; its "
            "columns are tag1, cost, age")
      << "all at once";
  std::vector<std::string> many(1000);
  for (size_t i = 0; i < many.size(); ++i) many[i] = "c" + std::to_string(i);
  EXPECT_LT(refusal(many).size(), 300u);
}

// The training table has a label, a category and two numbers.
TEST(CsvColumns, ATableWithoutNamesIsReadByTheNumbersOfTheTrainedOne) {
  const TrainedColumns trained{{"2", "4"}, {{"3"}}, 4, {"1"}};
  const CsvColumns whole = chooseNumbered("p.csv", {"1", "2", "3", "4"}, trained);
  EXPECT_EQ(whole.features, (Places{1, 3}));
  EXPECT_EQ(whole.categories, (std::vector<Places>{{2}}));
  const CsvColumns without_label = chooseNumbered("p.csv", {"1", "2", "3"}, trained);
  EXPECT_EQ(without_label.features, (Places{0, 2})) << "they have moved up";
  EXPECT_EQ(without_label.categories, (std::vector<Places>{{1}}));
  try {
    chooseNumbered("p.csv", {"1", "2"}, trained);
    ADD_FAILURE() << "two of four columns";
  } catch (const Error& error) {
    EXPECT_EQ(
        error.message(),
        "p.csv: it has 2 columns, and the training table 4, or 3 without the label or targets");
  }
}

TEST(CsvColumns, FeaturesAloneWithoutNamesKeepTheOrderOfTheTable) {
  const TrainedColumns trained{{"2", "4"}, {}, 5, {"1"}};
  EXPECT_EQ(chooseNumbered("p.csv", {"1", "2"}, trained).features, (Places{0, 1}));
  const TrainedColumns turned{{"4", "2"}, {}, 5, {"1"}};
  EXPECT_THROW(chooseNumbered("p.csv", {"1", "2"}, turned), Error) << "which comes first?";
}

TEST(CsvColumns, TwoOfOneNameCanNotBeFound) {
  cluster::CsvSpec spec;
  spec.label = "kind";
  try {
    chooseColumns("t.csv", {"a", "b", "a", "kind"}, spec);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.message(),
              "t.csv: two columns are named 'a', and a model finds its columns by their names: "
              "give one of them another name");
  }
  spec.features = {"b"};
  EXPECT_EQ(chooseColumns("t.csv", {"a", "b", "a", "kind"}, spec).features, (Places{1}))
      << "those that nobody reads may have one name";
}

TEST(CsvColumns, AFirstRecordIsNotTakenForNames) {
  cluster::CsvSpec spec;
  spec.label = "3";
  spec.no_features = true;
  spec.categorical = {{"user", {"1"}, 100}, {"genre", {"2"}, 0, {"drama", "comedy"}}};
  const auto isRefused = [&spec](const Names& first) {
    try {
      checkHeader("t.csv", chooseColumns("t.csv", first, spec), spec);
      return false;
    } catch (const Error& error) {
      EXPECT_EQ(error.message(),
                "t.csv: the first line looks like a record: say 'header: false' if it is one, or "
                "'header: true' if it names the columns");
      return true;
    }
  };
  EXPECT_TRUE(isRefused({"ann", "comedy", "click"})) << "a word of the list";
  EXPECT_TRUE(isRefused({"ann", "horror", "0"})) << "a class where the label's name would be";
  EXPECT_FALSE(isRefused({"user", "genre", "click"}));
  spec.categorical = {{"user", {"1"}}, {"item", {"2"}}};
  EXPECT_TRUE(isRefused({"17", "4", "0"})) << "numbers only";
  EXPECT_FALSE(isRefused({"user", "item", "click"}));
  spec.class_names = {"click", "none"};
  EXPECT_TRUE(isRefused({"user", "item", "click"})) << "the label's field is a class";
}

// A file that is no table may begin with a line of any length.
TEST(CsvColumns, ALongNameIsShortenedInAMessage) {
  TrainedColumns trained;
  trained.features = {"a"};
  try {
    chooseTrained("t.csv", {std::string(100'000, 'x')}, trained);
    FAIL() << "there is no column 'a'";
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("'a'"), std::string::npos) << error.message();
    EXPECT_LT(error.message().size(), 300u);
  }
}

}  // namespace
}  // namespace dtf::data
