#include "daemons/workerd/job_data.h"

#include "common/base/log.h"
#include "common/data/data_files.h"
#include "common/data/open_dataset.h"

namespace dtf::workerd {

namespace {

std::shared_ptr<const data::Dataset> open(
    const cluster::DatasetSpec& dataset, uint64_t seed, bool eval,
    const std::function<void(const std::string& what)>& on_reading) {
  const std::string files = data::filesText(dataset);
  if (files.empty()) return data::openDataset(dataset, seed, eval);  // drawn
  on_reading("its data: " + files);
  const bool is_large = dataset.format == cluster::DatasetSpec::Format::kImages ||
                        data::bytesOfFiles(dataset) >= data::kLongReadBytes;
  if (is_large) log::info("event=reading_data files=\"{}\"", files);
  std::shared_ptr<const data::Dataset> opened = data::openDataset(dataset, seed, eval);
  if (is_large) log::info("event=data_read files=\"{}\" examples={}", files, opened->size());
  on_reading("");
  return opened;
}

}  // namespace

JobData openJobData(const cluster::TrainSpec& train, bool evaluates,
                    const std::function<void(const std::string& what)>& on_reading) {
  JobData data;
  data.train = open(train.data.train, train.data.seed, false, on_reading);
  if (!evaluates || !train.data.eval) return data;
  data::checkSameOrder(train.data.train, *train.data.eval);
  data.eval = open(*train.data.eval, train.data.seed, true, on_reading);
  return data;
}

}  // namespace dtf::workerd
