#include "common/data/csv_other_words.h"

#include <gtest/gtest.h>

#include "tests/unit/data/idx_files.h"

namespace dtf::data {
namespace {

TEST(OtherWordsCount, HasTheWordsOfEachColumnWithTheFirstPlace) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.write("t.csv", "x,a\ny,b\nz,a|c|d\n");
  cluster::CategoricalColumns first{"first", {"1"}, 0, {"x"}, 1};
  cluster::CategoricalColumns second{"second", {"2"}, 0, {"a"}, 1};
  second.split = '|';
  second.max_words = 4;
  std::vector<CategoryReader> readers;
  readers.emplace_back(first, "first");
  readers.emplace_back(second, "second");
  CsvColumns columns;
  columns.names = {"p", "q"};
  columns.categories = {{0}, {1}};
  OtherWordsCount words;
  CsvRecords records(path, ',');
  while (records.next()) {
    for (size_t i = 0; i < 2; ++i) EXPECT_EQ(readers[i].add(records.field(i)), "");
    words.count(records, columns, readers);
    for (CategoryReader& reader : readers) reader.keep();
  }
  const std::vector<OtherWords> all = words.all();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].column, "p");
  EXPECT_EQ(all[0].count, 2);
  EXPECT_EQ(all[0].first, "y");
  EXPECT_EQ(all[0].where, path.string() + ":2:1");
  EXPECT_EQ(all[1].count, 3) << "b, c and d";
  EXPECT_EQ(all[1].first, "b");
}

TEST(Shown, IsALineOfTheLog) {
  EXPECT_EQ(shown("a\n\"b\""), "a  b ");
  EXPECT_EQ(shown(std::string(41, 'x')), std::string(40, 'x') + "...");
}

}  // namespace
}  // namespace dtf::data
