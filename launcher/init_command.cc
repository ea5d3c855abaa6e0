// dtf-launch init: a job's file for data.

#include <fmt/format.h>

#include <system_error>

#include "common/base/error.h"
#include "common/base/file.h"
#include "common/base/print.h"
#include "common/base/text.h"
#include "launcher/commands.h"
#include "launcher/init/job_file.h"
#include "launcher/init/written_job.h"
#include "launcher/output.h"

namespace dtf::launcher {

namespace {

namespace fs = std::filesystem;

// The last name of a path, without endings: "penguins" of "data/penguins.csv.gz".
std::string nameOfPath(const fs::path& given) {
  fs::path path = given.lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  if (path == "." || path == "..") path = fs::absolute(path).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  std::string name = path.filename().string();
  if (const size_t dot = name.find('.'); dot != name.npos && dot > 0) name.resize(dot);
  return plainName(name, "job");
}

JobPlace placeOfJob(const Options& options) {
  const std::string name = nameOfPath(*options.data);
  if (!options.output) return {name, name + ".yaml"};
  if (*options.output == "-") return {name, {}};
  return {nameOfPath(*options.output), *options.output};
}

std::string foundText(const JobFile& job, const JobPlace& place) {
  std::string text;
  for (const std::string& line : job.findings) text += printable(line) + "\n";
  text += fmt::format("{}: written. Next:\n", place.file.string());
  for (const std::string& command : job.commands) text += "  " + command + "\n";
  return text;
}

}  // namespace

int initJob(const Options& options) {
  if (!options.data)
    throw Error(
        ErrorCode::kUsage,
        "the data are missing: 'dtf-launch init FILE' describes a table in text, an array or an "
        "archive of NumPy, or a folder of images");
  const JobPlace place = placeOfJob(options);
  const auto refuseExisting = [&] {
    std::error_code ignored;
    if (!options.force && !place.file.empty() && fs::exists(place.file, ignored))
      throw Error(
          ErrorCode::kCannotWrite,
          fmt::format("{} is there already: --force replaces it, -o FILE writes another one",
                      place.file.string()));
  };
  refuseExisting();  // before the data are read, which may take a while
  const DatasetProfile profile = profileData(*options.data, options.target, options.features);
  const JobFile job =
      checkedJob(place, [&](bool divides) { return describe(profile, place, divides); });
  if (place.file.empty()) {
    print(job.text);
    return 0;
  }
  refuseExisting();
  atomicReplace(place.file, job.text);
  if (options.json)
    printEvent("init", {{"data", options.data->string()},
                        {"file", place.file.string()},
                        {"findings", job.findings},
                        {"next", job.commands}});
  else
    print(foundText(job, place));
  return 0;
}

}  // namespace dtf::launcher
