#include "launcher/options.h"

#include <array>
#include <boost/program_options.hpp>
#include <sstream>
#include <string_view>
#include <utility>

#include "common/base/error.h"
#include "common/base/text.h"

namespace dtf::launcher {

namespace {

namespace po = boost::program_options;

constexpr std::array<std::pair<std::string_view, Verb>, 5> kVerbs = {{{"up", Verb::kUp},
                                                                      {"check", Verb::kCheck},
                                                                      {"status", Verb::kStatus},
                                                                      {"logs", Verb::kLogs},
                                                                      {"stop", Verb::kStop}}};

[[noreturn]] void failUsage(const std::string& message) {
  throw Error(ErrorCode::kUsage, "dtf-launch: error: " + message +
                                     "\n  see the options and examples: dtf-launch --help");
}

po::options_description visibleOptions() {
  po::options_description options("Options");
  auto add = options.add_options();
  add("set", po::value<std::vector<std::string>>()->composing()->value_name("KEY=VALUE"),
      "replace a value of the file; may be repeated");
  add("run-dir", po::value<std::string>()->value_name("DIR"),
      "the run directory, instead of the file's run_dir");
  add("dry-run", po::bool_switch(), "print the command of each task, and start none");
  add("json", po::bool_switch(), "JSON lines on stdout, the summary as the last one");
  add("color", po::value<std::string>()->default_value("auto")->value_name("WHEN"),
      "auto, always or never; auto heeds NO_COLOR");
  add("bin-dir", po::value<std::string>()->value_name("DIR"),
      "the folder of psd and workerd (default: beside dtf-launch, then PATH)");
  add("help,h", po::bool_switch(), "print this and exit");
  add("version", po::bool_switch(), "print the version and exit");
  return options;
}

po::variables_map parse(const std::vector<std::string>& arguments) {
  po::options_description all = visibleOptions();
  all.add_options()("word", po::value<std::vector<std::string>>());
  po::positional_options_description positional;
  positional.add("word", -1);
  po::variables_map values;
  try {
    // No guessing: `--run` must not become --run-dir today and an error tomorrow.
    const int style =
        po::command_line_style::default_style & ~po::command_line_style::allow_guessing;
    po::store(
        po::command_line_parser(arguments).options(all).positional(positional).style(style).run(),
        values);
  } catch (const po::error& error) {
    failUsage(error.what());
  }
  return values;
}

std::optional<std::filesystem::path> pathOf(const po::variables_map& values, const char* name) {
  if (values.count(name) == 0) return std::nullopt;
  const std::string text = values[name].as<std::string>();
  if (text.empty()) failUsage(std::string("--") + name + " needs the name of a folder");
  return text;
}

// [up|check|status|logs|stop] CLUSTER.yaml [TASK...]
void readWords(std::vector<std::string> words, Options& options) {
  if (!words.empty()) {
    for (const auto& [word, verb] : kVerbs) {
      if (words.front() != word) continue;
      options.verb = verb;
      words.erase(words.begin());
      break;
    }
  }
  if (words.empty()) failUsage("the name of a CLUSTER.yaml is missing");
  options.cluster_file = words.front();
  options.tasks.assign(words.begin() + 1, words.end());
  if (!options.tasks.empty() && options.verb != Verb::kLogs) {
    std::vector<std::string_view> verbs;
    for (const auto& [word, verb] : kVerbs) verbs.push_back(word);
    const std::string near = nearestWord(words.front(), verbs);
    failUsage("unexpected '" + options.tasks.front() + "' after " + words.front() +
              (near.empty() ? "" : "; did you mean the verb '" + near + "'?"));
  }
}

}  // namespace

Options parseOptions(const std::vector<std::string>& arguments) {
  const po::variables_map values = parse(arguments);
  Options options;
  if (values["help"].as<bool>())
    options.verb = Verb::kHelp;
  else if (values["version"].as<bool>())
    options.verb = Verb::kVersion;
  if (options.verb != Verb::kUp) return options;
  options.dry_run = values["dry-run"].as<bool>();
  options.json = values["json"].as<bool>();
  options.run_dir = pathOf(values, "run-dir");
  options.bin_dir = pathOf(values, "bin-dir");
  if (values.count("set") != 0) options.overrides = values["set"].as<std::vector<std::string>>();
  const std::string color = values["color"].as<std::string>();
  if (!parseColorMode(color, options.color))
    failUsage("--color " + color + " is none of auto, always, never");
  readWords(values.count("word") != 0 ? values["word"].as<std::vector<std::string>>()
                                      : std::vector<std::string>(),
            options);
  if (options.dry_run && options.verb != Verb::kUp) failUsage("--dry-run is for the verb 'up'");
  return options;
}

std::string helpText() {
  std::ostringstream text;
  text << R"(Usage: dtf-launch [up] CLUSTER.yaml [options]    run the job, until it ends
       dtf-launch check CLUSTER.yaml           validate the file and list its tasks
       dtf-launch status CLUSTER.yaml          is the job running, and which of its tasks
       dtf-launch logs CLUSTER.yaml [TASK...]  print the logs of the last run
       dtf-launch stop CLUSTER.yaml            end a running job

)" << visibleOptions()
       << R"(
Examples:
  dtf-launch configs/clusters/local.yaml
  dtf-launch local.yaml --set train.steps=200 --run-dir /tmp/try
  dtf-launch local.yaml --dry-run
  dtf-launch local.yaml --json > events.jsonl
  dtf-launch logs local.yaml worker/1

Results go to stdout, logs and progress to stderr. Ctrl-C stops the job, twice at once.
Exit codes: 0 done; 1 training failed; 2 usage; 65 bad data; 69 host, port or peer unavailable; 70 internal
error; 73 cannot write; 77 permission; 78 bad configuration; 124 deadline; 128+n ended by signal n.
)";
  return text.str();
}

}  // namespace dtf::launcher
