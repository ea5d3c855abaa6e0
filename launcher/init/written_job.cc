#include "launcher/init/written_job.h"

#include <fmt/format.h>

#include <filesystem>

#include "common/base/error.h"
#include "common/base/log.h"
#include "common/base/text.h"
#include "common/cluster/cluster_yaml.h"
#include "common/data/byte_block.h"
#include "common/data/data_files.h"
#include "common/train/data_check.h"
#include "common/train/job_check.h"
#include "common/yaml/report.h"
#include "common/yaml/yaml_tree.h"

namespace dtf::launcher {

namespace {

using cluster::DatasetSpec;

bool isReadToItsEnd(const DatasetSpec& dataset) {
  return dataset.format != DatasetSpec::Format::kImages &&
         data::bytesOfFiles(dataset) <= data::kResidentBytesMax;
}

std::filesystem::path fileOf(const JobPlace& place) {
  return place.file.empty() ? std::filesystem::path(place.job + ".yaml") : place.file;
}

std::string nameOf(const JobPlace& place) {
  return printable(fileOf(place).string());
}

void check(const std::string& text, const JobPlace& place) {
  yaml::Report report;
  cluster::JobSpec job = cluster::loadClusterText(fileOf(place), text, report);
  train::checkJob(job, {}, report);
  report.throwIfAny();
  cluster::DataSpec& data = job.train->data;
  if (!isReadToItsEnd(data.train)) return;
  if (data.train.split) data.eval.reset();  // the other side of the same data
  job.train->checkpoint.reset();            // a run of this name is another job's
  train::checkContents(
      job, report, [](const std::string&) {}, log::Level::kDebug);
  report.throwIfAny();
}

void refuseLongFile(const std::string& text, const JobPlace& place) {
  if (text.size() <= yaml::kYamlBytesMax) return;
  throw Error(ErrorCode::kBadData,
              fmt::format("{} would have {} bytes of names and words, and a job's file has {} at "
                          "most: shorten them, or leave columns out of the table",
                          nameOf(place), text.size(), yaml::kYamlBytesMax));
}

}  // namespace

std::string mistakesIn(const std::string& text, const JobPlace& place) {
  try {
    check(text, place);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kBadConfig && error.code() != ErrorCode::kBadData) throw;
    return error.message();
  }
  return "";
}

JobFile checkedJob(const JobPlace& place, const std::function<JobFile(bool divides)>& make) {
  JobFile job = make(true);
  refuseLongFile(job.text, place);
  const std::string mistakes = mistakesIn(job.text, place);
  if (mistakes.empty()) return job;
  JobFile undivided = make(false);
  if (undivided.text != job.text && mistakesIn(undivided.text, place).empty()) return undivided;
  throw Error(
      ErrorCode::kInternal,
      fmt::format("internal error: `dtf-launch check` refuses the job that init has made, so "
                  "{} is not written. Please report this, with the first lines of the "
                  "data:\n{}",
                  nameOf(place), mistakes));
}

}  // namespace dtf::launcher
