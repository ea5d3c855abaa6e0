#include "common/data/read_signature.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "common/data/open_dataset.h"
#include "tests/unit/data/idx_files.h"

namespace dtf::data {
namespace {

using cluster::DatasetSpec;
using Names = std::vector<std::string>;

// "width" and "height" are numbers, "city" a word, "kind" the class.
DatasetSpec tableOf(const TemporaryFolder& folder, const std::string& name,
                    const std::string& text) {
  DatasetSpec spec;
  spec.format = DatasetSpec::Format::kCsv;
  spec.files = {folder.write(name, text)};
  spec.files_marks = {{"job.yaml", 5, 9}};
  spec.csv.label = "kind";
  spec.csv.class_names = {"no", "yes"};
  spec.csv.categorical = {{"place", {"city"}, 0, {"york", "rome"}, 1}};
  return spec;
}

constexpr char kTrained[] = "width,height,city,kind\n1,2,rome,no\n3,4,york,yes\n";

template <class T>
std::vector<T> numbersOf(const Part& part) {
  std::vector<T> numbers(part.bytes().size() / sizeof(T));
  std::memcpy(numbers.data(), part.bytes().data(), part.bytes().size());
  return numbers;
}

std::string refusalOf(const DatasetSpec& spec, const DataSignature& model) {
  try {
    readAsTrained(spec, model);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadData);
    return error.message();
  }
  return "";
}

TEST(ReadSignature, OfATableHasItsColumnsAndTheirPreparation) {
  const TemporaryFolder folder;
  EXPECT_EQ(
      encodeSignature(readSignature(tableOf(folder, "t.csv", kTrained))),
      R"({"kind":"table","header":true,"table_columns":4,"inputs":[{"name":"features","columns":)"
      R"(["width","height"],"preparation":[]},{"name":"place","columns":["city"],"preparation":)"
      R"([{"op":"vocabulary","words":["york","rome"],"num_oov_buckets":1}]}],"targets":)"
      R"([{"name":"labels","columns":["kind"],"preparation":[{"op":"vocabulary","words":)"
      R"(["no","yes"]}]}]})");
}

// A model of the 100 classes has another meaning than one of the 20.
TEST(ReadSignature, OfCifar100HasItsLabels) {
  DatasetSpec spec;
  spec.format = DatasetSpec::Format::kCifar100;
  spec.files = {"train.bin"};
  spec.files_marks = {{"job.yaml", 5, 9}};
  const DataSignature fine = readSignature(spec);
  EXPECT_EQ(refusalOf(spec, fine), "");
  spec.label_mode = cluster::LabelMode::kCoarse;
  EXPECT_EQ(refusalOf(spec, readSignature(spec)), "");
  EXPECT_NE(refusalOf(spec, fine).find("label_mode"), std::string::npos) << refusalOf(spec, fine);
}

TEST(ReadSignature, OfImagesHasTheirSizeAndTheClassesOfTheFolders) {
  const TemporaryFolder folder;
  DatasetSpec images;
  images.format = DatasetSpec::Format::kImages;
  images.image_folder.folder = {folder.path(), {"t.yaml", 3, 13}};
  images.image_folder.setSize({2, 2, 3});
  for (const char* each : {"b", "a"}) std::filesystem::create_directories(folder.path() / each);
  const DataSignature signature = readSignature(images);
  EXPECT_EQ(classWords(signature), (Names{"a", "b"}));
  EXPECT_EQ(refusalOf(images, signature), "");
  images.image_folder.class_names = {"b", "a"};
  const std::string turned = refusalOf(images, signature);
  EXPECT_NE(turned.find("t.yaml:3:13: error: "), std::string::npos) << turned;
  EXPECT_NE(turned.find("class 0 is 'a' of the 2 that the model was trained on, and 'b' of the 2"),
            std::string::npos)
      << turned;
  images.image_folder.class_names.clear();
  images.image_folder.resize = cluster::ImagesSpec::Resize::kCrop;
  EXPECT_NE(refusalOf(images, signature).find("resize method=stretch"), std::string::npos);
  EXPECT_NE(refusalOf(images, signature).find("resize method=crop"), std::string::npos);
}

struct Change {
  const char* what;
  std::string text;
  void (*change)(DatasetSpec&);
  const char* refused;  // null: accepted, with the same numbers
};

std::vector<Change> changes() {
  const auto nothing = [](DatasetSpec&) {};
  return {
      {"the same", kTrained, nothing, nullptr},
      {"another order", "kind,city,height,width\nno,rome,2,1\nyes,york,4,3\n", nothing, nullptr},
      {"one more column", "id,width,height,city,kind\n9,1,2,rome,no\n8,3,4,york,yes\n", nothing,
       nullptr},
      {"features named in another order", kTrained,
       [](DatasetSpec& spec) {
         spec.csv.features = {"height", "width"};
       },
       nullptr},
      {"features by their numbers", kTrained,
       [](DatasetSpec& spec) {
         spec.csv.features = {"1", "2"};
       },
       nullptr},
      {"numbers that are other columns now", "height,city,width,kind\n2,rome,1,no\n4,york,3,yes\n",
       [](DatasetSpec& spec) {
         spec.csv.features = {"1"};
         spec.csv.categorical[0].columns = {"2"};
       },
       "trained on the columns width, height, and"},
      {"another name", "width,depth,city,kind\n1,2,rome,no\n3,4,york,yes\n", nothing,
       "trained on the columns width, height, and"},
      {"another category", "width,height,town,kind\n1,2,rome,no\n3,4,york,yes\n",
       [](DatasetSpec& spec) { spec.csv.categorical[0].columns = {"town"}; },
       "trained on the column city, and"},
      {"another target", "width,height,city,kind,sort\n1,2,rome,no,yes\n3,4,york,yes,no\n",
       [](DatasetSpec& spec) { spec.csv.label = "sort"; }, "trained on the column kind, and"},
      {"classes in another order", kTrained,
       [](DatasetSpec& spec) {
         spec.csv.class_names = {"yes", "no"};
       },
       "class 0 is 'no'"},
      {"classes as numbers", "width,height,city,kind\n1,2,rome,0\n3,4,york,1\n",
       [](DatasetSpec& spec) { spec.csv.class_names.clear(); }, "preparation vocabulary words=[2]"},
      {"words in another order", kTrained,
       [](DatasetSpec& spec) {
         spec.csv.categorical[0].vocabulary_list = {"rome", "york"};
       },
       "word 0 is 'york'"},
      {"words that are hashed", kTrained,
       [](DatasetSpec& spec) {
         spec.csv.categorical[0] = {"place", {"city"}, 100};
       },
       "hash buckets=100"},
      {"no names", "1,2,rome,no\n3,4,york,yes\n",
       [](DatasetSpec& spec) {
         spec.csv.header = false;
         spec.csv.label = "4";
         spec.csv.categorical[0].columns = {"3"};
       },
       "have none"},
  };
}

// Each change of an evaluation's table is accepted with the same numbers, or rejected.
TEST(ReadAsTrained, ATableIsReadByItsNamesOrRefused) {
  const TemporaryFolder folder;
  const DatasetSpec train = tableOf(folder, "t.csv", kTrained);
  const DataSignature model = readSignature(train);
  const auto same = openDataset(train, 1, false);
  for (const Change& each : changes()) {
    DatasetSpec spec = tableOf(folder, "e.csv", each.text);
    each.change(spec);
    const std::string refusal = refusalOf(spec, model);
    if (each.refused != nullptr) {
      EXPECT_NE(refusal.find(each.refused), std::string::npos) << each.what << ": " << refusal;
      EXPECT_NE(refusal.find("job.yaml:5:9: error: "), std::string::npos) << refusal;
      continue;
    }
    ASSERT_EQ(refusal, "") << each.what;
    const auto read = openDataset(readAsTrained(spec, model), 1, true);
    EXPECT_EQ(numbersOf<float>(read->features()), numbersOf<float>(same->features())) << each.what;
    EXPECT_EQ(numbersOf<int32_t>(read->categories()[0]), numbersOf<int32_t>(same->categories()[0]))
        << each.what;
    EXPECT_EQ(numbersOf<int32_t>(read->labels()), numbersOf<int32_t>(same->labels())) << each.what;
  }
}

// Each table's label is set in the job's file, so both names mean the same column.
TEST(ReadAsTrained, TheLabelOfAnEvaluationMayHaveAnotherName) {
  const TemporaryFolder folder;
  const DatasetSpec train = tableOf(folder, "t.csv", kTrained);
  DatasetSpec eval = tableOf(folder, "e.csv", "width,height,city,truth\n1,2,rome,no\n");
  eval.csv.label = "truth";
  EXPECT_NE(refusalOf(eval, readSignature(train)), "") << "of a model alone";
  EXPECT_EQ(readAsTrained(eval, train).csv.label, "truth");
  EXPECT_EQ(refusalOf(eval, withTargetsOf(eval, readSignature(train))), "");
}

TEST(ReadAsTrained, NamesThatAreNoUtf8AreFound) {
  const TemporaryFolder folder;
  DatasetSpec train = tableOf(folder, "t.csv",
                              "gr\xf6\xdf"
                              "e,city,b,kind\n1,rome,2,no\n");
  const DataSignature model = decodeSignature(encodeSignature(readSignature(train)), "f");
  DatasetSpec eval = tableOf(folder, "e.csv",
                             "b,kind,city,gr\xf6\xdf"
                             "e\n2,no,rome,1\n");
  EXPECT_EQ(numbersOf<float>(openDataset(readAsTrained(eval, model), 1, true)->features()),
            (std::vector<float>{1, 2}));
}

// The training table isn't needed and may be missing.
TEST(ReadFeaturesAsTrained, ATableIsReadByTheModelAlone) {
  const TemporaryFolder folder;
  DatasetSpec train = tableOf(folder, "t.csv", kTrained);
  const DataSignature model = readSignature(train);
  std::filesystem::remove(train.files[0]);
  train.csv.features = {"height", "width"};
  const UnlabelledExamples read =
      readFeatures(folder.write("p.csv", "city,height,width\nrome,2,1\n"), train, {2}, model);
  EXPECT_EQ(numbersOf<float>(read.features), (std::vector<float>{1, 2}));
  EXPECT_EQ(numbersOf<int32_t>(read.categories[0]), (std::vector<int32_t>{1}));
  train.csv.categorical[0].vocabulary_list = {"rome", "york"};
  try {
    readFeatures(folder.path() / "p.csv", train, {2}, model);
    ADD_FAILURE() << "words in another order";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadConfig);
    EXPECT_NE(error.message().find("word 0 is 'york' of the 2 that the model was trained on"),
              std::string::npos)
        << error.message();
  }
}

TEST(ReadFeaturesAsTrained, ATableWithoutNamesIsReadByItsNumbers) {
  const TemporaryFolder folder;
  DatasetSpec train;
  train.format = DatasetSpec::Format::kCsv;
  train.csv.header = false;
  train.csv.label = "1";
  train.files = {folder.write("t.csv", "0,5,6\n1,7,8\n")};
  train.files_marks = {{"job.yaml", 5, 9}};
  const DataSignature model = readSignature(train);
  std::filesystem::remove(train.files[0]);
  const auto read = [&](const char* text) {
    return numbersOf<float>(readFeatures(folder.write("p.csv", text), train, {2}, model).features);
  };
  EXPECT_EQ(read("1,5,6\n"), (std::vector<float>{5, 6}));
  EXPECT_EQ(read("5,6\n"), (std::vector<float>{5, 6}));
  EXPECT_THROW(read("5\n"), Error);
  train.csv.header = true;
  EXPECT_THROW(read("a,b\n5,6\n"), Error) << "which is a?";
}

}  // namespace
}  // namespace dtf::data
