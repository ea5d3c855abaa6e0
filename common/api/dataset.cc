#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/api/guarded.h"
#include "common/api/handles.h"
#include "common/base/check.h"
#include "common/base/error.h"
#include "common/cluster/read_train.h"
#include "common/cluster/schema.h"
#include "common/data/data_signature.h"
#include "common/data/learn_table.h"
#include "common/data/left_out_log.h"
#include "common/data/open_dataset.h"
#include "common/data/read_signature.h"
#include "common/data/shard_reader.h"
#include "common/yaml/yaml_tree.h"

struct dtf_dataset {
  dtf::data::ShardReader reader;
  std::vector<std::string> classes;  // empty: they have no words
};

namespace {

using dtf::Error;
using dtf::ErrorCode;
using dtf::api::guarded;
using dtf::cluster::DatasetSpec;
using dtf::cluster::DataSpec;

constexpr int64_t kShardsMax = 1 << 20;
constexpr int64_t kEpochsMax = 1'000'000'000;

[[noreturn]] void refuse(const std::string& why) {
  throw Error(ErrorCode::kBadConfig, why);
}

// Reads the settings; an empty text stands for the embedded digits, as in a job.
DataSpec readSettings(const std::string& text, const std::filesystem::path& folder) {
  dtf::yaml::Report report;
  report.setTables(dtf::cluster::allTables());
  const int source = report.addFile(folder / "data", text);
  const std::optional<dtf::yaml::YamlNode> root = dtf::yaml::parseYaml(text, source, report);
  report.throwIfAny();
  DTF_CHECK(root.has_value());
  if (!root->isNull() && !root->isMap())
    refuse("the settings of a data set are keys and values, as 'train: {format: digits}'");
  DataSpec data = dtf::cluster::readData(root->isNull() ? nullptr : &*root, report);
  report.throwIfAny();
  return data;
}

// Gives the examples the shape that a job has from its model.
void setShape(DatasetSpec& spec, const std::vector<int64_t>& shape) {
  const bool are_images = spec.format == DatasetSpec::Format::kImages;
  const bool is_libsvm = spec.format == DatasetSpec::Format::kLibsvm;
  if (!are_images && !is_libsvm) return;
  if (shape.empty())
    refuse(are_images ? "images are scaled to the size of the model: give input_shape, as "
                        "[224, 224, 3]"
                      : "a libsvm file has no shape of its examples: give input_shape, as [784]");
  spec.libsvm.shape = shape;
  const auto is_size = [](int64_t size) { return size >= 1; };
  if (!std::ranges::all_of(shape, is_size)) refuse("the sizes of input_shape must be at least 1");
  if (are_images && !spec.image_folder.setSize(shape))
    refuse("images have an input_shape of [height, width], or [height, width, 1 or 3]");
}

// The examples to train on, or those to evaluate, prepared as the former.
DatasetSpec specOf(DataSpec& data, const dtf_dataset_options& options) {
  const std::vector<int64_t> shape(options.input_shape, options.input_shape + options.input_rank);
  setShape(data.train, shape);
  DatasetSpec train = dtf::data::learnTable(data.train);
  if (options.evaluation == 0) return train;
  if (!data.eval) refuse("the settings have no examples to evaluate: add 'eval' or 'eval_split'");
  setShape(*data.eval, shape);
  return dtf::data::readAsTrained(*data.eval, train);
}

dtf::data::ShardOptions shardOptions(const DataSpec& data, const dtf_dataset_options& options) {
  const int64_t of = options.of == 0 ? 1 : options.of;
  if (of < 1 || of > kShardsMax)
    refuse("a data set has from 1 to " + std::to_string(kShardsMax) + " shards, not " +
           std::to_string(of));
  if (options.rank < 0 || options.rank >= of)
    refuse("rank must be from 0 to " + std::to_string(of - 1) + ", of " + std::to_string(of) +
           " shards, not " + std::to_string(options.rank));
  if (options.epochs < 0 || options.epochs > kEpochsMax)
    refuse("epochs must be from 1 to " + std::to_string(kEpochsMax) + ", or 0 for no end, not " +
           std::to_string(options.epochs));
  dtf::data::ShardOptions shard{.batch_size = data.batch_size,
                                .seed = data.seed,
                                .rank = static_cast<uint32_t>(options.rank),
                                .of = static_cast<uint32_t>(of),
                                .epochs = static_cast<uint64_t>(options.epochs)};
  if (options.evaluation == 0) shard.augment = data.augment;
  return shard;
}

// Gives away the parts of a batch, or none after an error.
void giveParts(dtf::data::Batch batch, dtf_tensor** values) {
  std::vector<std::unique_ptr<dtf_tensor>> made;
  for (dtf::Tensor& part : batch.parts)
    made.push_back(std::make_unique<dtf_tensor>(dtf_tensor{std::move(part)}));
  DTF_CHECK(!made.empty());
  for (size_t i = 0; i < made.size(); ++i) values[i] = made[i].release();
}

}  // namespace

dtf_code dtf_dataset_open(const char* settings, const dtf_dataset_options* options,
                          dtf_dataset** made) {
  return guarded([&] {
    const dtf_dataset_options wanted = dtf::api::optionsOf(options, "dtf_dataset_options");
    dtf::api::quietLog();
    DataSpec data = readSettings(settings, wanted.folder == nullptr ? "" : wanted.folder);
    const dtf::data::ShardOptions shard = shardOptions(data, wanted);
    const DatasetSpec spec = specOf(data, wanted);
    const auto opened = dtf::data::openDataset(spec, data.seed, wanted.evaluation != 0);
    dtf::data::LeftOutLog(dtf::log::Level::kWarning).add(*opened);
    DTF_CHECK(opened != nullptr);
    *made = new dtf_dataset{dtf::data::ShardReader(opened, shard),
                            dtf::data::classWords(dtf::data::readSignature(spec))};
  });
}

void dtf_dataset_free(dtf_dataset* dataset) {
  delete dataset;
}

int64_t dtf_dataset_examples(const dtf_dataset* dataset) {
  return dataset->reader.dataset().size();
}

int64_t dtf_dataset_batch_size(const dtf_dataset* dataset) {
  return dataset->reader.batchSize();
}

size_t dtf_dataset_parts(const dtf_dataset* dataset) {
  return dataset->reader.dataset().parts().size();
}

const char* dtf_dataset_part(const dtf_dataset* dataset, size_t index, dtf_dtype* dtype,
                             int64_t* dims, size_t room, size_t* rank) {
  const auto parts = dataset->reader.dataset().parts();
  if (index >= parts.size()) return nullptr;
  const dtf::data::PartSpec& spec = parts[index].spec();
  const std::vector<int64_t>& all = spec.shape.dims();
  if (dtype != nullptr) *dtype = static_cast<dtf_dtype>(spec.dtype);
  if (dims != nullptr) std::copy_n(all.begin(), std::min(room, all.size()), dims);
  if (rank != nullptr) *rank = all.size();
  return spec.name.c_str();
}

dtf_code dtf_dataset_batch(dtf_dataset* dataset, uint64_t global_step, dtf_tensor** values) {
  return guarded([&] { giveParts(dataset->reader.readBatch(global_step), values); });
}

uint64_t dtf_dataset_steps(const dtf_dataset* dataset) {
  return dataset->reader.steps();
}

dtf_code dtf_dataset_next_batch(dtf_dataset* dataset, int64_t n, dtf_tensor** values) {
  return guarded([&] { giveParts(dataset->reader.readNext(n), values); });
}

uint64_t dtf_dataset_epochs_completed(const dtf_dataset* dataset) {
  return dataset->reader.epochsCompleted();
}

dtf_code dtf_dataset_slice(dtf_dataset* dataset, int64_t first, int64_t count,
                           dtf_tensor** values) {
  return guarded([&] { giveParts(dataset->reader.readSlice(first, count), values); });
}

const char* dtf_dataset_class(const dtf_dataset* dataset, size_t index) {
  return index < dataset->classes.size() ? dataset->classes[index].c_str() : nullptr;
}
