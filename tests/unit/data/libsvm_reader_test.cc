#include "common/data/libsvm_reader.h"

#include <gtest/gtest.h>

#include "common/base/error.h"
#include "common/data/open_dataset.h"
#include "common/data/read_signature.h"
#include "tests/unit/data/idx_files.h"

namespace dtf::data {
namespace {

using cluster::DatasetSpec;

class LibsvmReader : public ::testing::Test {
 protected:
  DatasetSpec fileOf(const std::string& text, int64_t width = 4) {
    DatasetSpec spec;
    spec.format = DatasetSpec::Format::kLibsvm;
    spec.files = {folder_.write("a.svm", text)};
    spec.files_marks = {{"job.yaml", 5, 9}};
    spec.libsvm.shape = {width};
    return spec;
  }
  std::string mistake(const DatasetSpec& spec) {
    return mistakeOf([&] { readLibsvm(spec); }, ErrorCode::kBadData, folder_);
  }
  // The fault of a file's only record.
  std::string faultOf(const std::string& line) {
    const std::string message = mistake(fileOf(line + "\n"));
    const size_t end = message.find('\n');
    return end == std::string::npos ? message : message.substr(end + 3);
  }
  template <class T>
  static std::vector<T> valuesOf(const Part& part) {
    const std::span<const T> values = part.as<T>();
    return {values.begin(), values.end()};
  }

  TemporaryFolder folder_;
};

TEST_F(LibsvmReader, ReadsTheNumbersThatAreListedAndZeros) {
  const Dataset data = readLibsvm(
      fileOf("# a comment\n+1 1:0.5 3:-2e1 # more: of it\r\n\n-1\n  1\t2:7 4:1   \n-1 4:3"));
  EXPECT_EQ(data.features().spec(), (PartSpec{kFeatures, DType::kFloat32, Shape{4}}));
  EXPECT_EQ(valuesOf<float>(data.features()),
            (std::vector<float>{0.5, 0, -20, 0, 0, 0, 0, 0, 0, 7, 0, 1, 0, 0, 0, 3}));
  EXPECT_EQ(valuesOf<int32_t>(data.labels()), (std::vector<int32_t>{1, 0, 1, 0}));
}

TEST_F(LibsvmReader, ReadsPackedFilesInOrder) {
  DatasetSpec spec = fileOf("0 1:1\n2 1:2\n", 1);
  spec.files.push_back(folder_.write("b.svm", gzipped("1 1:3\n")));
  const Dataset data = readLibsvm(spec);
  EXPECT_EQ(valuesOf<float>(data.features()), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(valuesOf<int32_t>(data.labels()), (std::vector<int32_t>{0, 2, 1}));
  EXPECT_EQ(countLibsvm(spec.files), 3);
}

TEST_F(LibsvmReader, FeaturesHaveTheShapeOfTheModel) {
  DatasetSpec spec = fileOf("0 1:1 4:2\n");
  spec.libsvm.shape = {2, 2, 1};
  EXPECT_EQ(readLibsvm(spec).features().spec().shape, (Shape{2, 2, 1}));
}

TEST_F(LibsvmReader, IndicesMayBeginAtZero) {
  DatasetSpec spec = fileOf("0 0:5 3:1\n");
  EXPECT_NE(mistake(spec).find("a.svm:1:3: the index 0 in '0:5', and indices begin at 1: set "
                               "'zero_based: true'"),
            std::string::npos)
      << mistake(spec);
  spec.libsvm.zero_based = true;
  EXPECT_EQ(valuesOf<float>(readLibsvm(spec).features()), (std::vector<float>{5, 0, 0, 1}));
}

TEST_F(LibsvmReader, LabelsAreNumbersWordsOrTargets) {
  DatasetSpec named = fileOf("3 1:1\n1.0 1:1\n2 1:1\n");
  named.csv.class_names = {"1", "2", "3"};
  EXPECT_EQ(valuesOf<int32_t>(readLibsvm(named).labels()), (std::vector<int32_t>{2, 0, 1}));
  DatasetSpec targets = fileOf("3.25 1:1\n-1e2 1:1\n");
  targets.libsvm.are_targets = true;
  const Dataset data = readLibsvm(targets);
  EXPECT_EQ(data.labels().spec(), (PartSpec{kLabels, DType::kFloat32, Shape{1}}));
  EXPECT_EQ(valuesOf<float>(data.labels()), (std::vector<float>{3.25, -100}));
}

// Both would be class 0.
TEST_F(LibsvmReader, RefusesMinusOneBesideZero) {
  EXPECT_EQ(mistake(fileOf("-1 1:1\n1 1:1\n0 1:1\n")),
            "a.svm:3:1: a label of 0, and a.svm:1:1 has one of -1: list the classes with "
            "class_names: ['-1', '0', '1']");
}

TEST_F(LibsvmReader, SaysWhatIsWrongWithARecordAndWhere) {
  EXPECT_EQ(faultOf("1 5:1"),
            "a.svm:1:3: index 5 is beyond the 4 numbers of model.input.shape: "
            "set it to the largest index of the files");
  EXPECT_EQ(faultOf("1 3:1 2:1"),
            "a.svm:1:7: index 2 stands behind 3: the indices of a line ascend");
  EXPECT_EQ(faultOf("1 2:1 2:1"),
            "a.svm:1:7: index 2 stands behind 2: the indices of a line ascend");
  EXPECT_EQ(faultOf("1 2:x"), "a.svm:1:3: the value 'x' of index 2 is no number");
  EXPECT_EQ(faultOf("1 2:nan"), "a.svm:1:3: the value 'nan' of index 2 is no number");
  EXPECT_EQ(faultOf("1 2:1e99"), "a.svm:1:3: the value '1e99' of index 2 is no number");
  EXPECT_EQ(faultOf("1 a:1"), "a.svm:1:3: 'a' in 'a:1' is no index, a whole number");
  EXPECT_EQ(faultOf("1 99999999999999999999:1"),
            "a.svm:1:3: '99999999999999999999' in '99999999999999999999:1' is no index, a whole "
            "number");
  EXPECT_EQ(faultOf("1 -2:1"), "a.svm:1:3: '-2' in '-2:1' is no index, a whole number");
  EXPECT_EQ(faultOf("1 2"), "a.svm:1:3: '2' is no pair such as 3:0.5");
  EXPECT_EQ(faultOf(" 2:1"), "a.svm:1:2: there is no label before the first pair");
  EXPECT_NE(faultOf("1,3 2:1").find("a.svm:1:1: '1,3' is several labels"), std::string::npos);
  EXPECT_NE(faultOf("cat 2:1").find("a.svm:1:1: 'cat' is no class"), std::string::npos);
  EXPECT_NE(faultOf("1.5 2:1").find("set 'labels_as: targets'"), std::string::npos);
}

TEST_F(LibsvmReader, RefusesRankingsWhateverMayBeLeftOut) {
  DatasetSpec spec = fileOf("1 1:1\n1 qid:3 1:1\n");
  spec.csv.max_bad_records = 10;
  EXPECT_EQ(mistake(spec),
            "a.svm:2: 'qid:3' groups records for a ranking, which dtf doesn't learn: "
            "remove it, as with sed 's/ qid:[0-9]*//'");
}

TEST_F(LibsvmReader, LeavesOutAsManyAsTheJobAllows) {
  DatasetSpec spec = fileOf("1 1:1\n1 9:1\n0 2:1\n");
  EXPECT_NE(mistake(spec).find("1 of 3 records can't be read, and max_bad_records is 0"),
            std::string::npos)
      << mistake(spec);
  spec.csv.max_bad_records = 1;
  const Dataset data = readLibsvm(spec);
  EXPECT_EQ(data.size(), 2);
  EXPECT_EQ(data.leftOut().at(0).index, 1);
}

TEST_F(LibsvmReader, RefusesOtherFiles) {
  EXPECT_EQ(mistake(fileOf("")), "a.svm: there is no record");
  EXPECT_EQ(mistake(fileOf("# nothing\n")), "a.svm: there is no record");
  EXPECT_NE(mistake(fileOf(std::string("\x93NUMPY\x01\x00", 8))).find("expected a libsvm file"),
            std::string::npos);
  const std::string many(kLibsvmLineBytesMax + 10, '1');
  EXPECT_EQ(mistake(fileOf(many)), "a.svm:1: the line has more than 16777216 bytes");
}

TEST_F(LibsvmReader, PredictsFromLinesWithAndWithoutLabels) {
  const DatasetSpec like = fileOf("0 1:1\n1 1:2\n");
  const auto read = [&](const std::string& text) {
    return readFeatures(folder_.write("new.svm", text), like, {4});
  };
  const UnlabelledExamples labelled = read("1 2:3\n-1 1:1\n");
  EXPECT_EQ(valuesOf<float>(labelled.features), (std::vector<float>{0, 3, 0, 0, 1, 0, 0, 0}));
  EXPECT_EQ(labelled.truths, (std::vector<std::string>{"1", "-1"}));
  const UnlabelledExamples bare = read("2:3\n1 7:1\n3:1 4:2\n");
  EXPECT_EQ(bare.features.count(), 2);
  EXPECT_EQ(bare.unread.at(0).index, 1);
  EXPECT_TRUE(bare.truths.empty()) << "not all lines have one";
}

TEST_F(LibsvmReader, ClassNamesAreOfTheModel) {
  DatasetSpec spec = fileOf("2 1:1\n4 1:1\n");
  spec.csv.class_names = {"2", "4"};
  const DataSignature signature = readSignature(spec);
  EXPECT_EQ(signature.kind, "arrays");
  EXPECT_EQ(classWords(signature), (std::vector<std::string>{"2", "4"}));
  spec.csv.class_names = {"4", "2"};
  EXPECT_NE(readSignature(spec), signature);
}

TEST_F(LibsvmReader, FindsTheFactsOfAFile) {
  const LibsvmFacts facts =
      readLibsvmFacts(folder_.write("f.svm", "-1 3:1\n+1 7:2\n1.0 1:1 5:1\n"));
  EXPECT_EQ(facts.examples, 3);
  EXPECT_EQ(facts.width, 7);
  EXPECT_FALSE(facts.zero_based);
  EXPECT_EQ(facts.labels, (std::vector<std::string>{"-1", "1"}));
  EXPECT_TRUE(facts.are_whole);
  const LibsvmFacts zero = readLibsvmFacts(folder_.write("f.svm", "0.5 0:1 6:2\n1.5 1:1\n"));
  EXPECT_EQ(zero.width, 7);
  EXPECT_TRUE(zero.zero_based);
  EXPECT_FALSE(zero.are_whole);
  EXPECT_EQ(zero.mean, 1);
  EXPECT_EQ(zero.deviation, 0.5);
}

TEST(LooksLikeLibsvm, TellsItFromTables) {
  EXPECT_TRUE(looksLikeLibsvm("1 1:2 3:4\n# x\n-1 2:1\n1 1:"));
  EXPECT_TRUE(looksLikeLibsvm("3 qid:1 1:2\n"));
  EXPECT_TRUE(looksLikeLibsvm("+1\t1:2 \r\n0 5:2\r\n"));
  EXPECT_FALSE(looksLikeLibsvm("a,b,c\n1,2,3\n"));
  EXPECT_FALSE(looksLikeLibsvm("1 2 3\n4 5 6\n"));
  EXPECT_FALSE(looksLikeLibsvm("12:30 5\n"));
  EXPECT_FALSE(looksLikeLibsvm(""));
}

}  // namespace
}  // namespace dtf::data
