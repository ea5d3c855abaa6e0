#include "daemons/workerd/job_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/base/file_system.h"
#include "common/base/log.h"
#include "common/base/notify.h"
#include "common/base/text.h"
#include "common/data/byte_source.h"
#include "common/data/data_files.h"
#include "common/data/left_out_log.h"
#include "common/data/open_dataset.h"
#include "common/data/read_signature.h"
#include "common/train/saved_preparation.h"
#include "daemons/workerd/reading_watch.h"

namespace dtf::workerd {

namespace {

constexpr Duration kSaidEvery = std::chrono::seconds(1);

bool areLarge(const cluster::DatasetSpec& dataset) {
  return dataset.format == cluster::DatasetSpec::Format::kImages ||
         data::bytesOfFiles(dataset) >= data::kLongReadBytes;
}

// Returns what `read` does, while another thread reports its progress.
template <class Read>
auto watched(const std::string& what, const OnReading& on_reading, const Read& read) {
  const ReadingWatch watch(data::bytesRead, processTime, kSaidEvery, [&](uint64_t bytes) {
    on_reading(fmt::format("{}, {} read", what, bytesText(bytes)));
  });
  return read();
}

std::shared_ptr<const data::Dataset> open(const cluster::DatasetSpec& dataset, uint64_t seed,
                                          bool eval, const OnReading& on_reading) {
  const std::string files = data::filesText(dataset);
  if (files.empty()) return data::openDataset(dataset, seed, eval);  // generated
  const std::string what = "its data: " + files;
  on_reading(what);
  const bool is_large = areLarge(dataset);
  if (is_large) log::info("event=reading_data files=\"{}\"", files);
  const auto opened =
      watched(what, on_reading, [&] { return data::openDataset(dataset, seed, eval); });
  if (is_large) log::info("event=data_read files=\"{}\" examples={}", files, opened->size());
  on_reading("");
  return opened;
}

// Every worker leaves out the same records; one of them reports them. A launcher prints its report,
// so for the console the lines of the log are details.
void reportLeftOut(const JobData& data, bool is_reporter) {
  data::LeftOutLog log(is_reporter && !notifyEnabled() ? log::Level::kWarning : log::Level::kInfo);
  for (const auto* dataset : {&data.train, &data.eval}) {
    if (!*dataset) continue;
    const data::LeftOut added = log.add(**dataset);
    if (added.records > 0 && is_reporter)
      notify({{"event", "left_out"}, {"records", added.records}, {"reasons", added.reasons}});
  }
}

// Every worker has the same ones, so one of them reports. The two sides of a split have the same
// ones, too.
void reportOtherWords(const JobData& data) {
  const std::vector<data::OtherWords>& trained = data.train->otherWords();
  for (const data::OtherWords& words : trained)
    log::warning("event=other_words reason=\"{}\"", data::otherWordsText(words));
  if (!data.eval) return;
  for (const data::OtherWords& words : data.eval->otherWords()) {
    const auto same = std::ranges::find(trained, words.column, &data::OtherWords::column);
    if (same != trained.end() && same->where == words.where) continue;
    log::warning(
        "event=other_words reason=\"{}{}\"", data::otherWordsText(words),
        same != trained.end() ? "" : ", which no example to train on has: it stays as it began");
  }
}

// Returns null if no records are left out.
Json leftOutOf(const std::shared_ptr<const data::Dataset>& dataset) {
  if (!dataset || dataset->leftOut().empty()) return {};
  const std::vector<data::BadRecord>& records = dataset->leftOut();
  Json reasons = Json::array();
  for (size_t i = 0; i < std::min(records.size(), data::kBadRecordsShownMax); ++i)
    reasons.push_back(printable(records[i].reason));
  return {{"records", records.size()}, {"of", dataset->recordsRead()}, {"reasons", reasons}};
}

}  // namespace

Json leftOutJson(const JobData& data) {
  Json json;
  if (Json train = leftOutOf(data.train); !train.isNull()) json["train"] = std::move(train);
  if (Json eval = leftOutOf(data.eval); !eval.isNull()) json["eval"] = std::move(eval);
  return json;
}

cluster::DatasetSpec preparedTable(const cluster::TaskOptions& task, const OnReading& on_reading) {
  DTF_CHECK(task.job.train.has_value() && on_reading != nullptr);
  const cluster::DatasetSpec& table = task.job.train.value().data.train;
  if (!table.csv.learns()) return table;
  const std::string files = data::filesText(table);
  const std::string what = "its data: " + files;
  on_reading(what);
  const bool is_large = areLarge(table);
  if (is_large) log::info("event=preparing_data files=\"{}\"", files);
  cluster::DatasetSpec prepared = watched(what, on_reading, [&task] {
    return train::preparedTraining(realFileSystem(), task.job, task.fresh).data;
  });
  if (is_large) log::info("event=data_prepared files=\"{}\"", files);
  on_reading("");
  return prepared;
}

JobData openJobData(const cluster::TrainSpec& train, bool evaluates, const OnReading& on_reading) {
  JobData data;
  data.train = open(train.data.train, train.data.seed, false, on_reading);
  if (evaluates && train.data.eval) {
    const cluster::DatasetSpec eval = data::readAsTrained(*train.data.eval, train.data.train);
    data.eval = open(eval, train.data.seed, true, on_reading);
  }
  reportLeftOut(data, evaluates);
  if (evaluates) reportOtherWords(data);
  return data;
}

}  // namespace dtf::workerd
