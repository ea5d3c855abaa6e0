#include "common/data/csv_categories.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/base/checksum.h"

namespace dtf::data {
namespace {

std::vector<int32_t> numbersOf(CategoryReader& reader) {
  const Part part = reader.finish("t.csv");
  EXPECT_EQ(part.source(), "t.csv");
  const std::span<const int32_t> numbers = part.as<int32_t>();
  return {numbers.begin(), numbers.end()};
}

// Reads the fields; if the reader rejects a field, its record is dropped.
std::vector<int32_t> read(CategoryReader& reader, const std::vector<std::string>& fields) {
  for (const std::string& field : fields) {
    if (reader.add(field).empty())
      reader.keep();
    else
      reader.drop();
  }
  return numbersOf(reader);
}

TEST(CategoryReader, HashesFieldsToBelowItsBuckets) {
  const cluster::CategoricalColumns spec{"user", {"user_id"}, 1000};
  CategoryReader reader(spec, "user");
  const std::vector<int32_t> numbers = read(reader, {"ann", "bob", "ann", "", "17"});
  EXPECT_EQ(numbers[0], static_cast<int32_t>(checksumOf("ann") % 1000));
  EXPECT_EQ(numbers[2], numbers[0]) << "a word is a number";
  EXPECT_NE(numbers[1], numbers[0]);
  for (const int32_t number : numbers) EXPECT_TRUE(number >= 0 && number < 1000) << number;
  EXPECT_EQ(numbers.size(), 5u) << "an empty field is a word like any other";
}

// A checkpoint's weights of a word belong to its hash, so later versions must compute the same one.
TEST(CategoryReader, TheHashOfAWordNeverChanges) {
  const cluster::CategoricalColumns spec{"c", {"c"}, 1'000'000'000};
  CategoryReader reader(spec, "c");
  EXPECT_EQ(read(reader, {"user-17", ""}), (std::vector<int32_t>{848095873, 483603138}));
}

TEST(CategoryReader, FindsWordsInItsList) {
  const cluster::CategoricalColumns spec{"genre", {"g"}, 0, {"drama", "comedy"}};
  CategoryReader reader(spec, "genre");
  EXPECT_EQ(reader.add("horror"),
            "is none of the vocabulary_list (for other words there are num_oov_buckets)");
  reader.drop();
  EXPECT_EQ(read(reader, {"comedy", "horror", "drama"}), (std::vector<int32_t>{1, 0}));
}

TEST(CategoryReader, OtherWordsMayHaveNumbersBehindTheList) {
  const cluster::CategoricalColumns spec{"genre", {"g"}, 0, {"drama", "comedy"}, 3};
  CategoryReader reader(spec, "genre");
  const std::vector<int32_t> numbers = read(reader, {"comedy", "horror", "", "horror"});
  ASSERT_EQ(numbers.size(), 4u);
  EXPECT_EQ(numbers[0], 1);
  EXPECT_EQ(numbers[1], numbers[3]);
  for (const size_t other : {1, 2}) EXPECT_TRUE(numbers[other] >= 2 && numbers[other] < 5);
}

cluster::CategoricalColumns bagOf(int64_t max_words) {
  cluster::CategoricalColumns spec{"genre", {"g"}, 0, {"drama", "comedy"}, 1};
  spec.split = '|';
  spec.max_words = max_words;
  return spec;
}

TEST(CategoryReader, DividesAFieldIntoWordsFromNumberOne) {
  const cluster::CategoricalColumns spec = bagOf(3);
  CategoryReader reader(spec, "genre");
  EXPECT_EQ(reader.spec().shape, Shape{3});
  EXPECT_EQ(read(reader, {"comedy|drama", "", " drama | horror ||drama", "comedy"}),
            (std::vector<int32_t>{2, 1, 0, 0, 0, 0, 1, 3, 1, 2, 0, 0}));
  cluster::CategoricalColumns hashed{"tags", {"t"}, 1000};
  hashed.split = ';';
  hashed.max_words = 2;
  CategoryReader tags(hashed, "tags");
  EXPECT_EQ(read(tags, {"ann;bob"}),
            (std::vector<int32_t>{1 + static_cast<int32_t>(checksumOf("ann") % 1000),
                                  1 + static_cast<int32_t>(checksumOf("bob") % 1000)}));
}

TEST(CategoryReader, RejectsAFieldOfMoreWords) {
  const cluster::CategoricalColumns spec = bagOf(2);
  CategoryReader reader(spec, "genre");
  EXPECT_EQ(reader.add("drama|drama|comedy|drama"),
            "has 4 words, and 'max_words' is 2: set it to the most that a field has");
  reader.drop();
  cluster::CategoricalColumns strict = bagOf(2);
  strict.num_oov_buckets = 0;
  CategoryReader listed(strict, "genre");
  EXPECT_EQ(listed.add("drama|horror"),
            "has the word 'horror', which is none of the vocabulary_list (for other words there "
            "are num_oov_buckets)");
}

TEST(CategoryReader, CountsTheOtherWordsOfEachField) {
  cluster::CategoricalColumns spec = bagOf(3);
  spec.columns = {"g", "h"};
  CategoryReader reader(spec, "genre");
  EXPECT_EQ(reader.add("horror|drama|war"), "");
  EXPECT_EQ(reader.add("comedy"), "");
  EXPECT_EQ(reader.otherWords(0), 2);
  EXPECT_EQ(reader.otherWords(1), 0);
}

TEST(CategoryReader, LearnsTheWordsOfFields) {
  cluster::CategoricalColumns spec{"genre", {"g"}};
  spec.learned_max_size = 10;
  spec.split = '|';
  spec.max_words = 2;
  CategoryReader learning(spec, "genre");
  EXPECT_EQ(read(learning, {"b|a", "a"}), (std::vector<int32_t>{1, 2, 2, 0}));
  EXPECT_EQ(learning.words(), (std::vector<std::string>{"b", "a"}));
}

TEST(CategoryReader, TakesWholeNumbersAsTheyAre) {
  const cluster::CategoricalColumns spec{"item", {"i"}};
  CategoryReader reader(spec, "item");
  for (const char* wrong : {"-1", "1.5", "x", "", "99999999999"}) {
    EXPECT_EQ(reader.add(wrong),
              "is no whole number from 0 (for words there are hash_bucket_size and "
              "vocabulary_list)")
        << wrong;
    reader.drop();
  }
  EXPECT_EQ(read(reader, {"0", "-1", "2147483647"}), (std::vector<int32_t>{0, 2147483647}));
}

TEST(CategoryReader, SeveralColumnsAreOneInput) {
  const cluster::CategoricalColumns spec{"tags", {"t1", "t2"}, 100};
  CategoryReader reader(spec, "tags");
  EXPECT_EQ(reader.spec(), (PartSpec{"tags", DType::kInt32, Shape{2}}));
  for (const char* field : {"a", "b"}) EXPECT_EQ(reader.add(field), "");
  reader.keep();
  EXPECT_EQ(reader.add("b"), "");
  reader.drop();  // its second field was bad
  for (const char* field : {"b", "a"}) EXPECT_EQ(reader.add(field), "");
  reader.keep();
  const std::vector<int32_t> numbers = numbersOf(reader);
  ASSERT_EQ(numbers.size(), 4u);
  EXPECT_EQ(numbers[0], numbers[3]) << "they share their words";
  EXPECT_EQ(numbers[1], numbers[2]);
}

TEST(CategoryReader, PutsNumbersIntoBuckets) {
  cluster::CategoricalColumns spec{"age", {"age"}};
  spec.buckets = {0.7, 18, 65};
  spec.num_oov_buckets = 1;
  CategoryReader reader(spec, "age");
  EXPECT_EQ(read(reader, {"-5", "0.7", "17.9", "18", "65", "1e9", "", "NA"}),
            (std::vector<int32_t>{0, 1, 1, 2, 3, 3, 4, 4}))
      << "as Keras's Discretization; a missing value has a row of its own";
  EXPECT_EQ(CategoryReader(spec, "age").add("old"),
            "is no number, and belongs to none of the buckets");
  spec.num_oov_buckets = 0;
  EXPECT_EQ(CategoryReader(spec, "age").add("?"),
            "is a missing value (for such there is 'num_oov_buckets: 1')");
  EXPECT_EQ(spec.input().below, 4);
}

TEST(CategoryReader, LearnsWordsInOrderOfAppearanceAndReadsThemByTheLearnedList) {
  cluster::CategoricalColumns spec{"city", {"city"}, 0, {}, 1};
  spec.learned_max_size = 10;
  CategoryReader learning(spec, "city");
  for (const char* word : {"rome", "oslo", "rome"}) {
    EXPECT_EQ(learning.add(word), "");
    learning.keep();
  }
  EXPECT_EQ(learning.words(), (std::vector<std::string>{"rome", "oslo"}));
  EXPECT_EQ(numbersOf(learning), (std::vector<int32_t>{0, 1, 0}));
  const std::vector<std::string> learned = {"oslo"};
  CategoryReader reader(spec, "city", kResidentBytesMax, &learned);
  EXPECT_EQ(read(reader, {"rome", "oslo"}), (std::vector<int32_t>{1, 0}));
}

}  // namespace
}  // namespace dtf::data
