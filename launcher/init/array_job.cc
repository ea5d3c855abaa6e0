#include "launcher/init/array_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/text.h"
#include "launcher/init/yaml_text.h"

namespace dtf::launcher {

namespace {

constexpr int64_t kConvolvedSideMin = 8;

// Value type.
struct ImageShape {
  int64_t height = 0, width = 0, channels = 0;
};

std::string shapeText(const std::vector<int64_t>& shape) {
  std::vector<std::string> sizes;
  for (const int64_t size : shape) sizes.push_back(std::to_string(size));
  return "[" + join(sizes, ", ") + "]";
}

// Convolutions and poolings until a side is short, then one hidden layer.
void addConvolutions(JobDraft& draft, ImageShape image) {
  DTF_CHECK(image.height > 0 && image.width > 0 && image.channels > 0);
  constexpr int64_t kFiltersMax = 64, kFlatMax = 4096;
  int64_t filters = 16;
  for (int number = 1; std::min(image.height, image.width) >= kConvolvedSideMin; ++number) {
    draft.model.push_back(
        fmt::format("  - conv2d: {{filters: {}, kernel_size: 3, padding: same, activation: relu, "
                    "name: conv_{}}}",
                    filters, number));
    image = {image.height / 2, image.width / 2, filters};
    draft.model.push_back(fmt::format("  - max_pooling2d: {{pool_size: 2}}   # {} x {} x {}",
                                      image.height, image.width, image.channels));
    filters = std::min(2 * filters, kFiltersMax);
  }
  const bool is_small = image.height * image.width * image.channels <= kFlatMax;
  draft.model.emplace_back(is_small ? "  - flatten:" : "  - global_average_pooling2d:");
  draft.model.emplace_back("  - dense: {units: 64, activation: relu, name: hidden}");
}

void planImages(JobDraft& draft, int64_t examples, bool has_eval_data) {
  planExamples(draft, examples, has_eval_data);
  draft.steps = 500;
  draft.learning_rate = 0.002;
}

bool isImage(const ArraysProfile& arrays) {
  const std::vector<int64_t>& shape = arrays.shape;
  if (shape.size() < 2 || std::min(shape[0], shape[1]) < kConvolvedSideMin) return false;
  return shape.size() == 3 || arrays.pixels || shape[0] == shape[1];
}

void addArrayScale(JobDraft& draft, const ArraysProfile& arrays) {
  if (arrays.pixels) return;  // the model divides them by 255
  if (arrays.mean.empty()) {
    draft.model.emplace_back(
        "  - batch_normalization:   # finds out the mean and deviation of each number");
    return;
  }
  std::vector<std::string> means, deviations;
  for (const double mean : arrays.mean) means.push_back(yamlNumber(mean));
  for (const double deviation : arrays.deviation) deviations.push_back(yamlNumber(deviation));
  draft.model.emplace_back(
      "  - normalization:   # (x - mean) / std of each number, from this array");
  for (const auto& [key, items] : {std::pair("mean", &means), std::pair("std", &deviations)})
    for (const std::string& line : split(yamlList(key, *items, 4 + 6), '\n'))
      draft.model.push_back(line.substr(4));  // the model is indented by 4
}

void addArrayModel(JobDraft& draft, const ArraysProfile& arrays) {
  std::vector<int64_t> shape = arrays.shape;
  const bool is_image = isImage(arrays);
  if (is_image && shape.size() == 2) shape.push_back(1);
  draft.model.push_back(fmt::format("input: {{shape: {}}}   # of one example", shapeText(shape)));
  draft.model.emplace_back("layers:");
  addArrayScale(draft, arrays);
  if (is_image) {
    addConvolutions(draft, {shape[0], shape[1], shape[2]});
  } else if (shape.size() == 2 && !arrays.pixels) {
    draft.steps = 600;  // each takes as long as its sequences
    draft.model.push_back(
        fmt::format("  - lstm: {{units: 32}}   # {} steps of {} numbers", shape[0], shape[1]));
  } else {
    if (shape.size() > 1) draft.model.emplace_back("  - flatten:");
    addHiddenLayers(draft);
  }
  addOutput(draft, {.classes = arrays.classes,
                    .numbers = arrays.targets,
                    .tags = arrays.tags,
                    .mean = arrays.target_mean,
                    .deviation = arrays.target_deviation});
}

// Of one side: `features` and `labels` are names in the archive, or files.
void addArrays(std::vector<std::string>& data, const char* side, const ArraysProfile& arrays,
               const JobPlace& place, const std::string& features, const std::string& labels) {
  const bool is_archive = !arrays.archive.empty();
  const auto value = [&](const std::string& array) {
    return is_archive ? yamlText(array) : yamlPath(array, place.folder());
  };
  data.push_back(fmt::format("{}:", side));
  data.emplace_back(is_archive ? "  format: npz" : "  format: npy");
  if (is_archive) data.push_back("  archive: " + yamlPath(arrays.archive, place.folder()));
  data.push_back("  features: " + value(features));
  data.push_back(arrays.classes > 0
                     ? fmt::format("  labels: {}   # classes from 0", value(labels))
                     : fmt::format("  targets: {}   # numbers to learn", value(labels)));
  if (arrays.pixels) data.emplace_back("  features_as: pixels   # the model divides them by 255");
  if (arrays.bytes) data.emplace_back("  features_as: float32   # bytes as numbers");
}

std::string learntText(const ArraysProfile& arrays) {
  if (arrays.classes > 0) return fmt::format("{} classes", arrays.classes);
  if (arrays.tags) return fmt::format("{} numbers of 0 or 1 for each example", arrays.targets);
  return fmt::format("{} for each example",
                     amountText(static_cast<uint64_t>(arrays.targets), "number"));
}

void addEmptyClasses(std::vector<std::string>& findings, const ArraysProfile& arrays) {
  constexpr size_t kShown = 10;
  const std::vector<int64_t>& empty = arrays.empty_classes;
  if (empty.empty()) return;
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(empty.size(), kShown); ++i)
    shown.push_back(std::to_string(empty[i]));
  const std::string more =
      empty.size() > kShown ? fmt::format(" and {} more", empty.size() - kShown) : "";
  findings.push_back(fmt::format("no example has the class {}{} of 0 to {}", join(shown, ", "),
                                 more, arrays.classes - 1));
  findings.emplace_back("  np.unique(a, return_inverse=True)[1] numbers classes without gaps");
}

// Numbers to learn that may be classes in another form.
void addLikelyClasses(std::vector<std::string>& findings, const ArraysProfile& arrays) {
  if (arrays.one_hot)
    findings.push_back(fmt::format("each row of '{}' has a single 1: for classes save a.argmax(1)",
                                   printable(arrays.labels)));
  if (arrays.whole_values > 0)
    findings.push_back(
        fmt::format("'{}' has {} different whole values, as {}: if they are classes, save "
                    "a.astype('int64')",
                    printable(arrays.labels), arrays.whole_values, arrays.labels_type));
}

std::string sizeText(const ImagesProfile& images) {
  return fmt::format("{} x {} pixels, {}", images.width, images.height,
                     images.channels == 1 ? "grey" : "colours");
}

std::vector<std::string> imageFindings(const ImagesProfile& images) {
  std::vector<std::string> lines = {fmt::format(
      "{}: {} of {}", images.folder.string(),
      amountText(static_cast<uint64_t>(images.images), "image"),
      images.classes.size() == 1 ? "1 class" : fmt::format("{} classes", images.classes.size()))};
  constexpr size_t kClassesShown = 20;
  for (size_t i = 0; i < std::min(images.classes.size(), kClassesShown); ++i)
    lines.push_back(
        fmt::format("  {}: {}", printable(images.classes[i].first),
                    amountText(static_cast<uint64_t>(images.classes[i].second), "image")));
  if (images.classes.size() > kClassesShown)
    lines.push_back(fmt::format("  and {} more", images.classes.size() - kClassesShown));
  lines.push_back(fmt::format(
      "{} {}{}", images.one_size ? "all are" : "all become", sizeText(images),
      images.looked_at < images.images ? fmt::format(", by a sample of {}", images.looked_at)
                                       : ""));
  if (images.unread > 0)
    lines.push_back(fmt::format("{} of {} that were looked at can't be read, as {}", images.unread,
                                images.looked_at, images.first_unread));
  if (!images.eval_folder.empty())
    lines.push_back(fmt::format("{} is evaluated", images.eval_folder.string()));
  return lines;
}

// Of those that were looked at, nearly the same share can't be read as of all.
int64_t unreadOfAll(const ImagesProfile& images) {
  DTF_CHECK(images.looked_at > 0 && images.unread <= images.looked_at);
  const double share = static_cast<double>(images.unread) / static_cast<double>(images.looked_at);
  return std::llround(std::ceil(share * static_cast<double>(images.images)));
}

void addFolder(std::vector<std::string>& data, const char* side, const ImagesProfile& images,
               const JobPlace& place, const std::filesystem::path& folder) {
  data.push_back(fmt::format("{}:", side));
  data.emplace_back("  format: images   # a subfolder for each class");
  data.push_back("  folder: " + yamlPath(folder, place.folder()));
  if (!images.one_shape)
    data.emplace_back("  resize: crop   # the middle, as the images have different proportions");
}

}  // namespace

JobDraft arraysJob(const ArraysProfile& arrays, const JobPlace& place) {
  DTF_CHECK(!arrays.shape.empty() && arrays.mean.size() == arrays.deviation.size());
  JobDraft draft;
  const bool is_archive = !arrays.archive.empty();
  draft.input = is_archive ? arrays.archive.string() : arrays.features;
  for (const ArrayFacts& array : arrays.arrays) draft.findings.push_back(array.text());
  draft.findings.push_back(fmt::format("'{}' is learnt from, and '{}' is learnt: {}",
                                       printable(arrays.features), printable(arrays.labels),
                                       learntText(arrays)));
  addEmptyClasses(draft.findings, arrays);
  addLikelyClasses(draft.findings, arrays);
  const bool has_eval = !arrays.eval_features.empty();
  if (has_eval)
    draft.findings.push_back(fmt::format("'{}' and '{}' are evaluated",
                                         printable(arrays.eval_features),
                                         printable(arrays.eval_labels)));
  if (isImage(arrays))
    planImages(draft, arrays.examples, has_eval);
  else
    planExamples(draft, arrays.examples, has_eval);
  addArrayModel(draft, arrays);
  addArrays(draft.data, "train", arrays, place, arrays.features, arrays.labels);
  if (has_eval)
    addArrays(draft.data, "eval", arrays, place, arrays.eval_features, arrays.eval_labels);
  return draft;
}

JobDraft imagesJob(const ImagesProfile& images, const JobPlace& place) {
  DTF_CHECK(images.unread < images.looked_at);
  JobDraft draft;
  draft.input = images.folder;
  draft.findings = imageFindings(images);
  planImages(draft, images.images - unreadOfAll(images), !images.eval_folder.empty());
  draft.model.push_back(fmt::format(
      "input: {{shape: {}}}   # {}", shapeText({images.height, images.width, images.channels}),
      images.one_size ? "height, width, channels of the images" : "images are resized to this"));
  draft.model.emplace_back("layers:");
  addConvolutions(draft, {images.height, images.width, images.channels});
  addOutput(draft, {.classes = static_cast<int64_t>(images.classes.size())});
  addFolder(draft.data, "train", images, place, images.folder);
  if (images.unread > 0) {
    const int64_t unread = unreadOfAll(images);
    draft.data.push_back(fmt::format("  # {}{} can't be read, and are left out. Others may come:",
                                     images.looked_at < images.images ? "About " : "",
                                     amountText(static_cast<uint64_t>(unread), "image")));
    draft.data.push_back(maxBadRecords(unread));
  }
  if (!images.eval_folder.empty()) addFolder(draft.data, "eval", images, place, images.eval_folder);
  return draft;
}

}  // namespace dtf::launcher
