#include "launcher/option_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <deque>

#include "common/base/check.h"

namespace dtf::launcher {

namespace {

using cluster::OptionDef;

// The verbs that read the file of a job.
constexpr VerbSet kJobVerbs{Verb::kUp,     Verb::kSubmit, Verb::kCheck,  Verb::kExplain,
                            Verb::kServe,  Verb::kGraph,  Verb::kStatus, Verb::kLogs,
                            Verb::kAttach, Verb::kStop,   Verb::kEval,   Verb::kPredict,
                            Verb::kExport, Verb::kImport};
constexpr VerbSet kAllVerbs =
    kJobVerbs | VerbSet(Verb::kInit, Verb::kRuns, Verb::kCompare, Verb::kKeys);
constexpr VerbSet kStarters{Verb::kUp, Verb::kServe};
constexpr VerbSet kModelVerbs{Verb::kEval, Verb::kPredict, Verb::kExport};

constexpr LaunchOption kOptions[] = {
    {"fresh",
     "",
     "",
     {{{"up", VerbSet(Verb::kUp),
        "start anew; old checkpoints become checkpoints.old-N in the run directory"},
       {"graph", VerbSet(Verb::kGraph),
        "drop the variables that other graphs left on the tasks"}}}},
    {"detach",
     "",
     "-d",
     {{{"up, serve", kStarters, "return once every task is ready; the job goes on"}}}},
    {"follow", "", "-f", {{{"logs", VerbSet(Verb::kLogs), "go on as long as the job runs"}}}},
    {"list", "", "", {{{"logs", VerbSet(Verb::kLogs), "print only the names of the tasks"}}}},
    {"as-root",
     "",
     "",
     {{{"up, serve, import, stop", kStarters | VerbSet(Verb::kImport, Verb::kStop),
        "use the run directory of another user; root owns the new files in it"}}}},
    {"network",
     "",
     "",
     {{{"check", VerbSet(Verb::kCheck),
        "measure every pair of hosts at every address, and report the slow ones"}}}},
    {"measure",
     "",
     "",
     {{{"explain", VerbSet(Verb::kExplain),
        "measure the links between the hosts, and print the placement that 'placement: auto' "
        "chooses, and why"}}}},
    {"checkpoint",
     "STEP|DIR",
     "",
     {{{"eval, predict, export", kModelVerbs, "use this checkpoint, not the newest whole one"}}}},
    {"best",
     "",
     "",
     {{{"eval, predict, export", kModelVerbs,
        "use the checkpoint of the best evaluation (checkpoint.keep_best)"}}}},
    {"report",
     "",
     "",
     {{{"eval", VerbSet(Verb::kEval),
        "print precision, recall, F1 and support of each class, and the confusion matrix"}}}},
    {"input",
     "FILE",
     "",
     {{{"predict", VerbSet(Verb::kPredict),
        "IDX, .npy, an image or a folder of images, or .csv or .npz like the job's; - is standard "
        "input; default: the job's evaluation data"}}}},
    {"keep",
     "COLUMNS",
     "",
     {{{"predict", VerbSet(Verb::kPredict),
        "copy these columns of the input, a table, into each line, as id,name; may be repeated"}}},
     true},
    {"output",
     "FILE",
     "-o",
     {{{"predict", VerbSet(Verb::kPredict),
        "write FILE.txt, .jsonl, .csv or .npy, default text on stdout"},
       {"init", VerbSet(Verb::kInit), "the job's file, - is stdout"}}}},
    {"data",
     "FILE",
     "",
     {{{"init", VerbSet(Verb::kInit), "a table in text, .npz, .npy, or a folder of images"}}}},
    {"target",
     "NAME",
     "",
     {{{"init", VerbSet(Verb::kInit),
        "the column or array to learn; default: y, or the last column"}}}},
    {"features",
     "NAME",
     "",
     {{{"init", VerbSet(Verb::kInit), "the array of an .npz to learn from; default: x"}}}},
    {"force", "", "", {{{"init", VerbSet(Verb::kInit), "replace an existing file"}}}},
    {"to",
     "FILE",
     "",
     {{{"export", VerbSet(Verb::kExport), "FILE.safetensors, FILE.npz or FILE.onnx"}}}},
    {"from",
     "FILE",
     "",
     {{{"import", VerbSet(Verb::kImport), "FILE.safetensors, FILE.npz or FILE.onnx"}}}},
    {"layout",
     "dtf|pytorch",
     "",
     {{{"import", VerbSet(Verb::kImport),
        "layout of matrices, filters and flattened images in a FILE.safetensors or FILE.npz that "
        "dtf didn't write"}}}},
    {"prefix",
     "PREFIX",
     "",
     {{{"import", VerbSet(Verb::kImport),
        "take PREFIX off the names in FILE, as backbone; tensors without it aren't used"}}}},
    {"rename",
     "FROM=TO",
     "",
     {{{"import", VerbSet(Verb::kImport),
        "read the tensor FROM as TO, or all that begin with FROM if it ends in '.', as "
        "encoder.=body.; may be repeated"}}},
     true},
    {"graph", "FILE", "", {{{"graph", VerbSet(Verb::kGraph), "the ops, and the ones to run"}}}},
    {"timeline",
     "FILE",
     "",
     {{{"graph", VerbSet(Verb::kGraph),
        "record one step of every task, its ops, waits and sends, in FILE.json for "
        "ui.perfetto.dev"}}}},
    {"timeline-step",
     "N",
     "",
     {{{"graph", VerbSet(Verb::kGraph),
        "the step of --timeline; default 2, the first after the warm-up"}}}},
    {"dry-run",
     "",
     "",
     {{{"up, serve", kStarters, "print the command of each task, and start none"},
       {"submit", VerbSet(Verb::kSubmit), "print the script"},
       {"graph", VerbSet(Verb::kGraph),
        "print where each op runs, the tasks' parts of a step, and the tensors between them"}}}},
    {"dot",
     "",
     "",
     {{{"graph --dry-run, explain --graph", VerbSet(Verb::kGraph, Verb::kExplain),
        "for Graphviz: ... --dot | dot -Tsvg -o step.svg"}}}},
    {"parts",
     "",
     "",
     {{{"explain", VerbSet(Verb::kExplain),
        "print the graph of a training step, its devices, and the bytes from and to each ps; "
        "explain --graph is the same"}}}},
    {"job",
     "NAME",
     "",
     {{{"keys init", VerbSet(Verb::kKeys), "name of the job that uses the keys"}}}},
    {"cluster",
     "FILE",
     "",
     {{{"keys init, issue", VerbSet(Verb::kKeys),
        "keys for the job and all tasks of this CLUSTER.yaml"}}}},
    {"days",
     "N",
     "",
     {{{"keys init, issue, renew", VerbSet(Verb::kKeys),
        "days until the keys expire; default 365"}}}},
    {"json",
     "",
     "",
     {{{"", kAllVerbs,
        "print JSON lines on stdout; the last line of up is the summary; up -d prints one line"}}}},
    {"quiet",
     "",
     "-q",
     {{{"", kStarters | kModelVerbs | VerbSet(Verb::kSubmit, Verb::kCheck, Verb::kAttach),
        "print only warnings, errors and the result"}}}},
    {"verbose",
     "",
     "-v",
     {{{"", kStarters | VerbSet(Verb::kSubmit, Verb::kAttach),
        "print also every log line of the tasks"}}}},
    {"color", "WHEN", "", {{{"", kAllVerbs, "auto (default; heeds NO_COLOR), always or never"}}}},
    {"bin-dir",
     "DIR",
     "",
     {{{"", kStarters | VerbSet(Verb::kCheck, Verb::kExplain),
        "folder of psd and workerd (default: beside dtf-launch, then PATH)"}}}},
};

// The verbs whose help lists an option that psd and workerd have, too.
VerbSet verbsOfCommon(std::string_view name) {
  if (name == "help") return kAllVerbs;
  if (name == "version") return {};
  return name == "log-level" ? kStarters : kJobVerbs;
}

std::string withLetter(const LaunchOption& option, const std::string& text) {
  return option.letter.empty() ? text : fmt::format("{}: {}", option.letter, text);
}

// "-o: predict: write FILE.txt; init: the job's file"
std::string usesText(const LaunchOption& option) {
  std::string text;
  for (const OptionUse& use : option.uses) {
    if (use.text.empty()) continue;
    if (!text.empty()) text += "; ";
    text += use.words.empty() ? std::string(use.text) : fmt::format("{}: {}", use.words, use.text);
  }
  DTF_CHECK_MSG(!text.empty(), std::string(option.name));
  return withLetter(option, text);
}

// Of one verb; empty: the option isn't for it. keys has several, one for each of its words.
std::string textForVerb(const LaunchOption& option, Verb verb) {
  for (const OptionUse& use : option.uses) {
    if (!use.verbs.contains(verb)) continue;
    const bool names_action = use.words.find(' ') < use.words.find(',');
    return withLetter(
        option, names_action ? fmt::format("{}: {}", use.words, use.text) : std::string(use.text));
  }
  return "";
}

}  // namespace

bool LaunchOption::isFor(Verb verb) const {
  return isForAll() || std::any_of(uses.begin(), uses.end(), [verb](const OptionUse& use) {
           return use.verbs.contains(verb);
         });
}

std::span<const LaunchOption> launchOptions() {
  return kOptions;
}

std::span<const OptionDef> optionDefs() {
  static const std::deque<std::string> texts = [] {
    std::deque<std::string> all;
    for (const LaunchOption& option : kOptions) all.push_back(usesText(option));
    return all;
  }();
  static const std::vector<OptionDef> defs = [] {
    std::vector<OptionDef> all;
    for (const LaunchOption& option : kOptions)
      all.push_back({option.name, option.argument, texts[all.size()], option.repeatable});
    all.insert(all.end(), cluster::commonOptions().begin(), cluster::commonOptions().end());
    DTF_CHECK(all.size() == texts.size() + cluster::commonOptions().size());
    return all;
  }();
  return defs;
}

std::string helpOf(const VerbInfo& info) {
  std::deque<std::string> texts;
  std::vector<OptionDef> defs;
  for (const LaunchOption& option : kOptions) {
    const std::string text = textForVerb(option, info.verb);
    if (!text.empty())
      defs.push_back({option.name, option.argument, texts.emplace_back(text), option.repeatable});
  }
  for (const OptionDef& option : cluster::commonOptions())
    if (verbsOfCommon(option.name).contains(info.verb)) defs.push_back(option);
  DTF_CHECK_MSG(!defs.empty(), std::string(info.name));
  return fmt::format("dtf-launch {} {}: {}\n\n{}{}Options:\n{}\nAll verbs: dtf-launch --help\n",
                     info.name, info.words, info.what, info.more, info.more.empty() ? "" : "\n",
                     cluster::optionHelp(defs));
}

}  // namespace dtf::launcher
