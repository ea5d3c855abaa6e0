#include "launcher/init/libsvm_job.h"

#include <gmock/gmock.h>

#include "tests/unit/launcher/init/init_fixture.h"

namespace dtf::launcher {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Format = cluster::DatasetSpec::Format;

class LibsvmJob : public InitTest {
 protected:
  cluster::JobSpec jobOfText(const std::string& text) {
    folder_.write("a.svm", text);
    return jobOf("a.svm");
  }
};

TEST_F(LibsvmJob, TwoLabelsAreClasses) {
  std::string text = "# drawn\n";
  for (int i = 0; i < 30; ++i) text += i % 2 == 0 ? "+1 2:0.5 7:1\n" : "-1 1:3\n";
  const cluster::JobSpec job = jobOfText(text);
  const cluster::TrainSpec& train = *job.train;
  EXPECT_EQ(train.data.train.format, Format::kLibsvm);
  EXPECT_EQ(train.model.input_shape, (std::vector<int64_t>{7}));
  EXPECT_EQ(train.data.train.csv.class_names, (std::vector<std::string>{"-1", "1"}));
  EXPECT_EQ(model::outputOf(train.model).units, 1);
  EXPECT_TRUE(train.data.train.split.has_value());
  EXPECT_THAT(file_.text, HasSubstr("#   a.svm: 30 examples of up to 7 numbers, a libsvm file\n"));
  EXPECT_THAT(file_.text, HasSubstr("#   the labels are 2 classes: -1, 1\n"));
}

TEST_F(LibsvmJob, ClassesFromZeroNeedNoNames) {
  const cluster::JobSpec job = jobOfText("0 0:1\n1 3:1\n2 1:1\n0 2:5\n");
  EXPECT_TRUE(job.train->data.train.libsvm.zero_based);
  EXPECT_EQ(job.train->model.input_shape, (std::vector<int64_t>{4}));
  EXPECT_EQ(model::outputOf(job.train->model).units, 3);
  EXPECT_THAT(file_.text, Not(HasSubstr("class_names")));
}

TEST_F(LibsvmJob, NumbersAreTargets) {
  const cluster::JobSpec job = jobOfText("0.5 1:1\n1.25 2:1\n3e2 1:2\n");
  EXPECT_TRUE(job.train->data.train.libsvm.are_targets);
  EXPECT_EQ(job.train->model.loss.kind, model::Loss::kMse);
}

TEST_F(LibsvmJob, MistakesAreNamed) {
  const auto refused = [&](const std::string& text) {
    folder_.write("a.svm", text);
    return mistakeOf(ErrorCode::kBadData,
                     [&] { profileData(path("a.svm"), std::nullopt, std::nullopt); });
  };
  EXPECT_THAT(refused("1 1:1\n1 2:1\n"), HasSubstr("all labels are 1"));
  EXPECT_THAT(refused("1 1:1\n0 1:1\n1 1:1\n0 1:1\n1 1:1\n0 x:1\n"), HasSubstr("a.svm:6:3: 'x'"));
  EXPECT_THAT(refused("1 qid:1 1:1\n"), HasSubstr("groups records for a ranking"));
  EXPECT_THAT(
      mistakeOf(ErrorCode::kUsage, [&] { profileData(path("a.svm"), "kind", std::nullopt); }),
      HasSubstr("--target is for tables and arrays"));
}

}  // namespace
}  // namespace dtf::launcher
