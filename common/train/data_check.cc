#include "common/train/data_check.h"

#include <fmt/format.h>

#include <memory>
#include <optional>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/file_system.h"
#include "common/data/data_files.h"
#include "common/data/dataset.h"
#include "common/data/image_folder.h"
#include "common/data/left_out_log.h"
#include "common/data/open_dataset.h"
#include "common/data/read_signature.h"
#include "common/train/epochs.h"
#include "common/train/model_data.h"
#include "common/train/saved_preparation.h"
#include "common/yaml/error_at.h"

namespace dtf::train {

namespace {

using cluster::DatasetSpec;
using yaml::Mark;

bool isDrawn(const DatasetSpec& dataset) {
  return dataset.format == DatasetSpec::Format::kDigits ||
         dataset.format == DatasetSpec::Format::kSynthetic;
}

// Returns the place of the key that names the first file.
const Mark& markOf(const DatasetSpec& dataset) {
  for (const Mark* mark : {&dataset.images_mark, &dataset.npy.archive.mark,
                           &dataset.npy.features.mark, &dataset.image_folder.folder.mark})
    if (!mark->file.empty()) return *mark;
  return dataset.files_marks.empty() ? dataset.mark : dataset.files_marks[0];
}

// Checks the data of one job.
// Borrows: all arguments, for one call of run().
class DataChecker {
 public:
  DataChecker(const cluster::JobSpec& job, yaml::Report& report,
              const std::function<void(const std::string& what)>& on_reading, log::Level left_out)
      : job_(job),
        train_(job.train.value()),
        report_(report),
        on_reading_(on_reading),
        left_out_(left_out) {}

  DataCounts run() {
    DataCounts counts;
    const size_t mistakes_before = report_.mistakes();
    counts.train = count(train_.data.train, false);
    // The other side of a split has the same mistakes.
    const bool all_found = train_.data.train.split && report_.mistakes() > mistakes_before;
    if (train_.data.eval && !all_found) counts.eval = count(*train_.data.eval, true);
    if (trained_) counts.prepared_by = trained_->saved_step;
    return counts;
  }

 private:
  std::optional<int64_t> count(const DatasetSpec& dataset, bool eval) {
    if (isDrawn(dataset)) return dataset.count;
    if (!data::missingPath(dataset).empty()) return std::nullopt;
    const Mark& mark = markOf(dataset);
    try {
      if (dataset.format == DatasetSpec::Format::kImages && !dataset.split)
        return static_cast<int64_t>(data::listImages(dataset.image_folder).files.size());
      if (data::bytesOfFiles(dataset) >= data::kLongReadBytes)
        on_reading_(data::filesText(dataset));
      return read(dataset, eval);
    } catch (const yaml::ErrorAt& error) {
      report_.error(report_.placeOf(error.mark().file.empty() ? mark : error.mark()),
                    error.reason(), error.code());
    } catch (const Error& error) {
      report_.error(report_.placeOf(mark), error.message(), error.code());
    }
    return std::nullopt;
  }

  int64_t read(const DatasetSpec& dataset, bool eval) {
    if (!eval) trained_ = preparedTraining(realFileSystem(), job_, false);
    const bool is_prepared = eval && trained_ && trained_->data.csv.learned;
    const DatasetSpec spec = is_prepared ? data::readAsTrained(dataset, trained_->data)
                             : eval      ? dataset
                                         : trained_->data;
    const std::shared_ptr<const data::Dataset> read =
        checkedDataset(train_.model, data::openDataset(spec, train_.data.seed, eval));
    left_out_.add(*read);
    if (!eval) checkBatches(train_, read->size(), read->features().source());
    return read->size();
  }

  const cluster::JobSpec& job_;
  const cluster::TrainSpec& train_;
  yaml::Report& report_;
  const std::function<void(const std::string& what)>& on_reading_;
  data::LeftOutLog left_out_;
  std::optional<PreparedTable> trained_;  // once it has been read
};

}  // namespace

DataCounts checkContents(const cluster::JobSpec& job, yaml::Report& report,
                         const std::function<void(const std::string& what)>& on_reading,
                         log::Level left_out) {
  DTF_CHECK(job.train.has_value());
  return DataChecker(job, report, on_reading, left_out).run();
}

}  // namespace dtf::train
