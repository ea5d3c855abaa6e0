#include "daemons/workerd/job_data.h"

#include <algorithm>
#include <utility>

#include "common/base/log.h"
#include "common/base/text.h"
#include "common/data/data_files.h"
#include "common/data/open_dataset.h"
#include "common/data/read_signature.h"

namespace dtf::workerd {

namespace {

std::shared_ptr<const data::Dataset> open(
    const cluster::DatasetSpec& dataset, uint64_t seed, bool eval,
    const std::function<void(const std::string& what)>& on_reading) {
  const std::string files = data::filesText(dataset);
  if (files.empty()) return data::openDataset(dataset, seed, eval);  // generated
  on_reading("its data: " + files);
  const bool is_large = dataset.format == cluster::DatasetSpec::Format::kImages ||
                        data::bytesOfFiles(dataset) >= data::kLongReadBytes;
  if (is_large) log::info("event=reading_data files=\"{}\"", files);
  std::shared_ptr<const data::Dataset> opened = data::openDataset(dataset, seed, eval);
  if (is_large) log::info("event=data_read files=\"{}\" examples={}", files, opened->size());
  on_reading("");
  return opened;
}

// Returns null if no records are left out.
Json leftOutOf(const std::shared_ptr<const data::Dataset>& dataset) {
  if (!dataset || dataset->leftOut().empty()) return {};
  const std::vector<data::BadRecord>& records = dataset->leftOut();
  Json reasons = Json::array();
  for (size_t i = 0; i < std::min(records.size(), data::kBadRecordsShownMax); ++i)
    reasons.push_back(printable(records[i].reason));
  return {{"records", records.size()},
          {"of", dataset->size() + static_cast<int64_t>(records.size())},
          {"reasons", reasons}};
}

}  // namespace

Json leftOutJson(const JobData& data) {
  Json json;
  if (Json train = leftOutOf(data.train); !train.isNull()) json["train"] = std::move(train);
  if (Json eval = leftOutOf(data.eval); !eval.isNull()) json["eval"] = std::move(eval);
  return json;
}

JobData openJobData(const cluster::TrainSpec& train, bool evaluates,
                    const std::function<void(const std::string& what)>& on_reading) {
  JobData data;
  data.train = open(train.data.train, train.data.seed, false, on_reading);
  if (!evaluates || !train.data.eval) return data;
  const cluster::DatasetSpec eval = data::readAsTrained(*train.data.eval, train.data.train);
  data.eval = open(eval, train.data.seed, true, on_reading);
  return data;
}

}  // namespace dtf::workerd
