#include "launcher/init/array_job.h"

#include <gmock/gmock.h>

#include "tests/unit/launcher/init/init_fixture.h"

namespace dtf::launcher {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

using ArrayJob = InitTest;

ArraysProfile arraysOf(std::vector<int64_t> shape) {
  ArraysProfile profile;
  profile.archive = "d.npz";
  profile.features = "x";
  profile.labels = "y";
  profile.examples = 400;
  profile.shape = std::move(shape);
  profile.classes = 3;
  return profile;
}

std::vector<std::string> layersOf(const cluster::JobSpec& job) {
  std::vector<std::string> types;
  for (const model::LayerSpec& layer : job.train->model.layers) types.push_back(layer.type);
  return types;
}

TEST_F(ArrayJob, RecordsOfNumbersAreScaled) {
  ArraysProfile profile = arraysOf({2});
  profile.mean = {1, 2};
  profile.deviation = {0.5, 3};
  const cluster::JobSpec job = jobOf(profile);
  EXPECT_EQ(layersOf(job), (std::vector<std::string>{"normalization", "dense", "dense"}));
  const cluster::NpySpec& npy = job.train->data.train.npy;
  EXPECT_EQ(npy.features.path, "x");
  EXPECT_EQ(npy.labels.path, "y");
  EXPECT_FALSE(npy.features_as);
  EXPECT_TRUE(job.train->data.eval && job.train->data.eval->split);
}

TEST_F(ArrayJob, ImagesAreConvolved) {
  ArraysProfile profile = arraysOf({28, 28});
  profile.pixels = true;
  const cluster::JobSpec job = jobOf(profile);
  EXPECT_EQ(job.train->model.input_shape, (std::vector<int64_t>{28, 28, 1}));
  EXPECT_EQ(job.train->data.train.npy.features_as, cluster::FeaturesAs::kPixels);
  EXPECT_EQ(layersOf(job),
            (std::vector<std::string>{"conv2d", "max_pooling2d", "conv2d", "max_pooling2d",
                                      "flatten", "dense", "dense"}));
  EXPECT_EQ(layersOf(jobOf(arraysOf({100, 80, 3}))).front(), "batch_normalization");
}

TEST_F(ArrayJob, StepsOfNumbersAreASequence) {
  ArraysProfile profile = arraysOf({12, 2});
  profile.mean = {0, 0};
  profile.deviation = {1, 1};
  EXPECT_EQ(layersOf(jobOf(profile)), (std::vector<std::string>{"normalization", "lstm", "dense"}));
}

TEST_F(ArrayJob, FewPixelsAreFlat) {
  ArraysProfile profile = arraysOf({4, 4});
  profile.pixels = true;
  EXPECT_EQ(layersOf(jobOf(profile)), (std::vector<std::string>{"flatten", "dense", "dense"}));
}

TEST_F(ArrayJob, NumbersAndTagsAreTargets) {
  ArraysProfile profile = arraysOf({5});
  profile.classes = 0;
  profile.target_mean = 50;
  profile.target_deviation = 7;
  cluster::JobSpec job = jobOf(profile);
  EXPECT_EQ(job.train->model.loss.kind, model::Loss::kMse);
  EXPECT_EQ(job.train->data.train.npy.targets.path, "y");
  profile.targets = 4;
  profile.tags = true;
  job = jobOf(profile);
  EXPECT_EQ(job.train->model.loss.kind, model::Loss::kSigmoidCrossEntropy);
  EXPECT_EQ(model::outputOf(job.train->model).units, 4);
  EXPECT_EQ(job.train->checkpoint.value().keep_best, "auc");
}

TEST_F(ArrayJob, ClassesWithoutAnExampleAreNamed) {
  ArraysProfile profile = arraysOf({2});
  profile.empty_classes = {1};
  jobOf(profile);
  EXPECT_THAT(file_.text, HasSubstr("#   no example has the class 1 of 0 to 2\n"));
}

TEST_F(ArrayJob, NumbersThatMayBeClassesAreNamed) {
  ArraysProfile profile = arraysOf({2});
  profile.classes = 0;
  profile.labels_type = "float32";
  jobOf(profile);
  EXPECT_THAT(file_.text, Not(HasSubstr("int64")));
  profile.whole_values = 3;
  jobOf(profile);
  const std::string whole =
      "'y' has 3 different whole values, as float32: if they are classes, save a.astype('int64')";
  EXPECT_THAT(file_.text, HasSubstr("#   " + whole + "\n"));
  EXPECT_THAT(file_.findings, Contains(whole));
  profile.whole_values = 0;
  profile.targets = 4;
  profile.tags = profile.one_hot = true;
  jobOf(profile);
  const std::string one_hot = "each row of 'y' has a single 1: for classes save a.argmax(1)";
  EXPECT_THAT(file_.text, HasSubstr("#   " + one_hot + "\n"));
  EXPECT_THAT(file_.findings, Contains(one_hot));
}

TEST_F(ArrayJob, TestArraysAndFilesAreNamed) {
  ArraysProfile profile = arraysOf({2});
  profile.eval_features = "x_test";
  profile.eval_labels = "y_test";
  const cluster::JobSpec job = jobOf(profile);
  EXPECT_EQ(job.train->data.eval->npy.features.path, "x_test");
  EXPECT_FALSE(job.train->data.train.split);
  ArraysProfile files = arraysOf({2});
  files.archive.clear();
  files.features = path("x.npy");
  files.labels = path("y.npy");
  EXPECT_EQ(jobOf(files).train->data.train.npy.labels.path, path("y.npy"));
}

TEST_F(ArrayJob, AFolderOfImages) {
  ImagesProfile images;
  images.folder = path("photos");
  images.classes = {{"cat", 30}, {"dog", 30}, {"eel", 30}};
  images.images = images.looked_at = 90;
  images.height = 40;
  images.width = 64;
  images.one_size = images.one_shape = false;
  images.unread = 2;
  images.first_unread = "a.png: cut off";
  const cluster::JobSpec job = jobOf(images);
  const cluster::DatasetSpec& data = job.train->data.train;
  EXPECT_EQ(data.format, cluster::DatasetSpec::Format::kImages);
  EXPECT_EQ(data.image_folder.folder.path, path("photos"));
  EXPECT_EQ(data.image_folder.resize, cluster::ImagesSpec::Resize::kCrop);
  EXPECT_EQ(data.image_folder.max_bad_records, 12) << "2 now, and room for 10";
  EXPECT_EQ(job.train->model.input_shape, (std::vector<int64_t>{40, 64, 3}));
  EXPECT_EQ(model::outputOf(job.train->model).units, 3);
  EXPECT_THAT(file_.text, HasSubstr("#     cat: 30 images"));
  EXPECT_THAT(file_.text,
              HasSubstr("2 of 90 that were looked at can't be read, as a.png: cut off"));
  EXPECT_THAT(file_.text, HasSubstr("# 2 images can't be read, and are left out."));
}

TEST_F(ArrayJob, UnreadableImagesAreCountedByTheShareOfThoseLookedAt) {
  ImagesProfile images;
  images.folder = path("photos");
  images.classes = {{"cat", 15'000}, {"dog", 15'000}};
  images.images = 30'000;
  images.looked_at = 1000;
  images.height = images.width = 32;
  EXPECT_EQ(jobOf(images).train->data.train.image_folder.max_bad_records, 0);
  EXPECT_THAT(file_.text, Not(HasSubstr("max_bad_records")));
  images.unread = 2;
  EXPECT_EQ(jobOf(images).train->data.train.image_folder.max_bad_records, 120);
  EXPECT_THAT(file_.text, HasSubstr("# About 60 images can't be read"));
}

}  // namespace
}  // namespace dtf::launcher
