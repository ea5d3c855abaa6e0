// Each verb with each kind of file in each place that takes one. The answer names the file and has
// an exit code of the contract: never a signal, "internal error" or a hang. The verbs and options
// are compared with the program's own help, so a new one has to be added here.

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/e2e/cluster_fixture.h"
#include "tests/e2e/limited_run.h"
#include "tests/unit/data/idx_files.h"
#include "tests/unit/data/image_files.h"
#include "tests/unit/data/npy_files.h"

namespace dtf::testing {

namespace fs = std::filesystem;

namespace {

using Words = std::vector<std::string>;

// Arguments of each verb beside its CLUSTER.yaml, to get as far as it can without starting a task.
const std::map<std::string, Words>& verbs() {
  static const std::map<std::string, Words> all = {
      {"up", {"--dry-run"}},
      {"submit", {"--dry-run"}},
      {"check", {}},
      {"explain", {}},
      {"graph", {"--graph", "good.graph.yaml", "--dry-run"}},
      {"serve", {"--dry-run"}},
      {"status", {}},
      {"attach", {}},
      {"logs", {}},
      {"stop", {}},
      {"eval", {}},
      {"predict", {}},
      {"export", {"--to", "exported.npz"}},
      {"import", {"--from", "good.npz", "--layout", "dtf", "--run-dir", "imported"}},
      {"init", {}},
      {"runs", {}},
      {"compare", {"odd.yaml"}},
      {"keys", {}}};
  return all;
}

// An option that names a file or a folder: command lines that use it, with FILE where the file is
// named, and the endings that choose a reader or a writer.
struct FileOption {
  std::vector<Words> commands;
  Words endings = {""};
};

const std::map<std::string, FileOption>& fileOptions() {
  static const Words weights = {".safetensors", ".npz", ".onnx"};
  static const std::map<std::string, FileOption> all = {
      {"checkpoint",
       {{{"eval", "job.yaml", "--checkpoint", "./FILE"},
         {"predict", "job.yaml", "--checkpoint", "./FILE"},
         {"export", "job.yaml", "--to", "exported.npz", "--checkpoint", "./FILE"}}}},
      {"input",
       {{{"predict", "job.yaml", "--input", "FILE"}},
        {"", ".csv", ".csv.gz", ".npy", ".npz", ".png", ".jpg", ".idx"}}},
      {"output",
       {{{"predict", "job.yaml", "--output", "FILE"}}, {".txt", ".jsonl", ".csv", ".npy"}}},
      {"data",
       {{{"init", "--data", "FILE", "-o", "made.yaml", "--force"}}, {"", ".csv", ".npz", ".npy"}}},
      {"to", {{{"export", "job.yaml", "--to", "FILE"}}, weights}},
      {"from",
       {{{"import", "job.yaml", "--layout", "dtf", "--run-dir", "imported", "--from", "FILE"}},
        weights}},
      {"graph", {{{"graph", "job.yaml", "--dry-run", "--graph", "FILE"}}, {".yaml"}}},
      {"timeline",
       {{{"graph", "job.yaml", "--graph", "good.graph.yaml", "--timeline", "FILE"}}, {".json"}}},
      {"cluster",
       {{{"keys", "init", "keys-made", "--cluster", "FILE"},
         {"keys", "issue", "keys", "--cluster", "FILE"}},
        {".yaml"}}},
      {"bin-dir", {{{"up", "job.yaml", "--dry-run", "--bin-dir", "FILE"}}}},
      {"run-dir",
       {{{"check", "job.yaml", "--run-dir", "FILE"},
         {"status", "job.yaml", "--run-dir", "FILE"},
         {"stop", "job.yaml", "--run-dir", "FILE"},
         {"attach", "job.yaml", "--run-dir", "FILE"},
         {"logs", "job.yaml", "--run-dir", "FILE"},
         {"eval", "job.yaml", "--run-dir", "FILE"},
         {"import", "job.yaml", "--from", "good.npz", "--layout", "dtf", "--run-dir", "FILE"}}}},
      {"keys",
       {{{"check", "job.yaml", "--keys", "FILE"},
         {"status", "job.yaml", "--keys", "FILE"},
         {"keys", "issue", "FILE", "client"},
         {"keys", "renew", "FILE"},
         {"keys", "show", "FILE"},
         {"keys", "init", "FILE", "--job", "x"}}}}};
  return all;
}

Words withFile(Words command, const std::string& file) {
  for (std::string& word : command)
    if (const size_t at = word.find("FILE"); at != word.npos) word.replace(at, 4, file);
  return command;
}

std::string fileText(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

constexpr std::string_view kTable = "a,b,y\n1,2,0\n3,4,1\n5,6,2\n7,8,0\n";
constexpr std::string_view kNameWithControls = "we\x1b[31m\x07ird";

}  // namespace

class VerbsAndFilesTest : public ClusterTest {
 protected:
  VerbsAndFilesTest() {
    folder_.write("table.csv", std::string(kTable));
    folder_.write("good.graph.yaml", "ops:\n  - NoOp: {name: n}\n");
    writeJob("job.yaml", "{format: csv, files: [table.csv], label_column: y}");
    expectWell({"up", "job.yaml", "-q"});
    for (const char* file : {"good.safetensors", "good.npz", "good.onnx"})
      expectWell({"export", "job.yaml", "--to", file});
    expectWell({"keys", "init", "keys", "--job", "job"});
    makeKinds();
  }

  void writeJob(const std::string& name, const std::string& data, const std::string& shape = "[2]",
                const std::string& more = "") {
    folder_.write(name, "job: job\nrun_dir: runs/job\ncluster: {worker: [local]}\n" + more +
                            "train:\n  model: {input: {shape: " + shape +
                            "}, layers: [flatten, dense: {units: 10, name: fc}], loss: "
                            "sparse_categorical_crossentropy}\n  data: {batch_size: 2, train: " +
                            data + ", eval: " + data + "}\n  steps: 4\n  checkpoint: {}\n");
  }

  Spent run(Words argv, bool may_read_all = true) {
    argv.insert(argv.begin(), binary("dtf-launch"));
    ++runs_;
    return runLimited(std::move(argv), folder_.path(), may_read_all);
  }
  void expectWell(const Words& argv) {
    const Spent spent = run(argv);
    EXPECT_EQ(spent.exit_code, 0) << argv[0] << "\n" << spent.said;
  }

  // Each kind of file by its name: makes it at a path where nothing is.
  void makeKinds() {
    const auto bytes = [this](const std::string& name, std::string text) {
      kinds_[name] = [text = std::move(text)](const fs::path& path) {
        std::ofstream(path, std::ios::binary) << text;
      };
    };
    const auto link = [this](const std::string& name, const std::string& to) {
      kinds_[name] = [to](const fs::path& path) { fs::create_symlink(to, path); };
    };
    const auto cut = [](std::string text, size_t end) {
      text.resize(text.size() - std::min(text.size(), end));
      return text;
    };
    std::string junk;
    for (int i = 0; i < 5000; ++i) junk.push_back(static_cast<char>(i * 7919 >> 3));
    const std::string root = folder_.path() + "/";
    const std::string table(kTable);
    const std::string png = data::pngOf(8, 8, data::plain(64, {1, 2, 3}));
    bytes("empty", "");
    bytes("junk", junk);
    bytes("zeros", std::string(5000, '\0'));
    bytes("a gzip file cut short", cut(data::gzipped(table), 5));
    for (const char* each : {"good.safetensors", "good.npz", "good.onnx"}) {
      const std::string whole = fileText(root + each);
      bytes(each, whole);
      bytes(std::string(each) + " cut short", cut(whole, 30));
    }
    bytes("a picture", png);
    bytes("a picture cut short", cut(png, 20));
    bytes("a table", table);
    bytes("a graph", fileText(root + "good.graph.yaml"));
    bytes("a job", fileText(root + "job.yaml"));
    bytes("JSON", "{\"a\": [1, 2, {}]}");
    bytes("deep JSON", std::string(200'000, '['));
    bytes("UTF-16", std::string("\xff\xfe"
                                "a\0,\0y\0\n\0",
                                10));
    bytes("a long line", std::string(3'000'000, 'x'));
    link("/dev/zero", "/dev/zero");
    link("/dev/null", "/dev/null");
    link("a link to nothing", "nowhere");
    kinds_["nothing"] = [](const fs::path&) {};
    kinds_["a loop of links"] = [](const fs::path& path) {
      fs::create_symlink(path.filename(), path);
    };
    kinds_["a folder"] = [](const fs::path& path) { fs::create_directory(path); };
    kinds_["a pipe"] = [](const fs::path& path) { ::mkfifo(path.c_str(), 0600); };
    kinds_["a socket"] = [](const fs::path& path) {
      sockaddr_un address{};
      address.sun_family = AF_UNIX;
      path.string().copy(address.sun_path, sizeof(address.sun_path) - 1);
      const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
      EXPECT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
      ::close(fd);
    };
    kinds_["one of another user"] = [table](const fs::path& path) {
      std::ofstream(path) << table;
      fs::permissions(path, fs::perms::none);
    };
  }

  // Replaces the file `name` by one of that kind.
  void make(const std::string& name, const std::string& kind) {
    const fs::path path = fs::path(folder_.path()) / name;
    std::error_code ignored;
    if (fs::symlink_status(path, ignored).type() != fs::file_type::not_found)
      fs::remove_all(path, ignored);
    kinds_.at(kind)(path);
  }

  // `name`: the file that a refusal must name; empty: any.
  void expectAnswer(const Words& argv, const std::string& kind, const std::string& name) {
    const Spent spent = run(argv, kind != "one of another user");
    std::string command;
    for (const std::string& word : argv) command += word + " ";
    const std::string said = spent.said.substr(0, 2000);
    static const std::set<int> codes = {0, 2, 3, 65, 69, 73, 77, 78};
    EXPECT_TRUE(codes.contains(spent.exit_code))
        << command << "of " << kind << ": " << spent.exit_code << "\n"
        << said;
    EXPECT_EQ(said.find("internal error"), std::string::npos) << command << "of " << kind << said;
    EXPECT_LT(spent.memory_kib, kMemoryMaxKib) << command << "of " << kind;
    EXPECT_LT(spent.seconds, kSecondsMax) << command << "of " << kind;
    if (argv[0] != "logs") {
      EXPECT_LT(spent.said.size(), 30'000u) << command << "of " << kind;
    }
    for (const char c : spent.said)
      if (static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\t')
        FAIL() << "a control character: " << command << "of " << kind << "\n" << said;
    // A link is written through, or refused by the name of its target.
    const bool named = said.find(name) != said.npos || said.find("/dev/") != said.npos;
    if (spent.exit_code != 0 && spent.exit_code != 3) {
      EXPECT_TRUE(named) << command << "of " << kind << "\n" << said;
    }
    std::error_code ignored;
    for (const char* made : {"imported", "keys-made", "exported.npz"})
      fs::remove_all(fs::path(folder_.path()) / made, ignored);
  }

  std::map<std::string, std::function<void(const fs::path&)>> kinds_;
  int runs_ = 0;
};

// The verbs and options of the help, so that a new one is not forgotten here.
TEST_F(VerbsAndFilesTest, EachVerbAndEachOptionForAFileIsTried) {
  const std::string help = run({"help"}).said;
  std::set<std::string> found;
  const std::regex verb("\n  dtf-launch ([a-z]+) [^\n]*");
  for (std::sregex_iterator at(help.begin(), help.end(), verb), end; at != end; ++at)
    if ((*at)[1] != "help") found.insert((*at)[1]);
  std::set<std::string> known;
  for (const auto& [name, beside] : verbs()) known.insert(name);
  EXPECT_EQ(found, known);

  found.clear();
  known.clear();
  const std::regex option("\n  --([a-z-]+) [^ ]*(?:FILE|DIR) ");
  for (std::sregex_iterator at(help.begin(), help.end(), option), end; at != end; ++at)
    found.insert((*at)[1]);
  for (const auto& [name, uses] : fileOptions()) known.insert(name);
  EXPECT_EQ(found, known);
}

TEST_F(VerbsAndFilesTest, EachVerbAnswersOfEachKindOfClusterFile) {
  for (const auto& [kind, make_it] : kinds_)
    for (const auto& [verb, beside] : verbs()) {
      if (verb == "keys" || verb == "init") continue;  // with --cluster, --data
      make("odd.yaml", kind);
      Words argv = {verb, "odd.yaml"};
      argv.insert(argv.end(), beside.begin(), beside.end());
      expectAnswer(argv, kind, kind == "a job" ? "" : "odd.yaml");
    }
  EXPECT_GT(runs_, 300);
}

TEST_F(VerbsAndFilesTest, EachOptionAnswersOfEachKindOfFile) {
  for (const auto& [kind, make_it] : kinds_)
    for (const auto& [name, uses] : fileOptions())
      for (const Words& command : uses.commands)
        for (const std::string& ending : uses.endings) {
          make("odd" + ending, kind);
          // A timeline is made once the tasks are found, which don't run here.
          expectAnswer(withFile(command, "odd" + ending), kind, name == "timeline" ? "" : "odd");
        }
  EXPECT_GT(runs_, 900);
}

// The formats are compared with the reference of keys.
TEST_F(VerbsAndFilesTest, EachFormatOfDataAnswersOfEachKindOfFile) {
  const std::map<std::string, std::pair<std::string, std::string>> formats = {
      {"digits", {"", ""}},
      {"synthetic", {"", ""}},
      {"idx", {"images: FILE, labels: FILE", "[2]"}},
      {"cifar10", {"files: [FILE]", "[32, 32, 3]"}},
      {"cifar100", {"files: [FILE]", "[32, 32, 3]"}},
      {"csv", {"files: [FILE], label_column: y", "[2]"}},
      {"npy", {"features: FILE, labels: FILE", "[2]"}},
      {"libsvm", {"files: [FILE]", "[2]"}},
      {"npz", {"archive: FILE, features: x, labels: y", "[2]"}},
      {"images", {"folder: FILE", "[8, 8, 3]"}}};
  const std::string reference = run({"--help-config"}).said;
  const std::regex words("\n  format +([a-z0-9|]+),\\s+required");
  std::smatch match;
  ASSERT_TRUE(std::regex_search(reference, match, words));
  std::string known;
  std::istringstream choices(match[1]);
  for (std::string format; std::getline(choices, format, '|');)
    EXPECT_TRUE(formats.contains(format)) << "a new format: " << format;

  for (const auto& [kind, make_it] : kinds_)
    for (const auto& [format, keys] : formats) {
      if (keys.first.empty()) continue;
      for (const std::string file : {"odd", "odd.gz"}) {
        const std::string place = std::regex_replace(keys.first, std::regex("FILE"), file);
        writeJob("odd-data.yaml", "{format: " + format + ", " + place + "}", keys.second);
        make(file, kind);
        expectAnswer({"check", "odd-data.yaml"}, kind, file);
      }
    }
  EXPECT_GT(runs_, 300);
}

TEST_F(VerbsAndFilesTest, AFileThatTheJobNamesIsAnsweredLikewise) {
  for (const auto& [kind, make_it] : kinds_) {
    make("odd-train.yaml", kind);
    folder_.write("two.yaml", "job: two\ncluster: {worker: [local]}\ntrain: odd-train.yaml\n");
    expectAnswer({"check", "two.yaml"}, kind, "odd-train.yaml");
    fs::create_directories(folder_.path() + "/pictures/b");
    fs::create_directories(folder_.path() + "/pictures/a");
    for (const char* each : {"a/0.png", "b/0.png"})
      folder_.write(std::string("pictures/") + each, data::pngOf(8, 8, data::plain(64, {1, 2, 3})));
    make("pictures/a/odd.png", kind);
    writeJob("pictures.yaml", "{format: images, folder: pictures}", "[8, 8, 3]");
    // One that is no file is left out, which check warns of.
    expectAnswer({"up", "pictures.yaml", "-q", "--run-dir", "imported"}, kind, "odd.png");
  }
}

// Files in the folder of a run, from any writer.
TEST_F(VerbsAndFilesTest, AFileInTheFolderOfARunIsAnsweredLikewise) {
  const std::string checkpoint = "checkpoints/step-4";
  ASSERT_TRUE(fs::exists(folder_.path() + "/runs/job/" + checkpoint));
  std::vector<std::string> names = {"launch.json", "summary.json", "status.json",        "logs",
                                    "checkpoints", checkpoint,     "logs/worker-0.1.log"};
  for (const auto& entry : fs::directory_iterator(folder_.path() + "/runs/job/" + checkpoint))
    names.push_back(checkpoint + "/" + entry.path().filename().string());
  for (const std::string& name : names)
    for (const auto& [kind, make_it] : kinds_) {
      fs::remove_all(folder_.path() + "/run");
      fs::copy(folder_.path() + "/runs/job", folder_.path() + "/run", fs::copy_options::recursive);
      make("run/" + name, kind);
      const bool saved = name.find("step-") != name.npos;
      for (const char* verb :
           saved ? std::vector{"eval", "status"} : std::vector{"status", "stop", "attach", "logs"})
        expectAnswer({verb, "job.yaml", "--run-dir", "run"}, kind, "");
    }
  EXPECT_GT(runs_, 500);
}

// No output contains the control characters of a file's name.
TEST_F(VerbsAndFilesTest, ANameWithControlCharactersIsPrintedWithoutThem) {
  const std::string name(kNameWithControls);
  for (const char* kind : {"junk", "nothing", "a folder"})
    for (const auto& [option, uses] : fileOptions())
      for (const std::string& ending : uses.endings) {
        const std::string file = name + ending;
        make(file, kind);
        expectAnswer(withFile(uses.commands.front(), file), kind, "");
        make(file, kind);
        expectAnswer({"check", file}, kind, "ird");
      }
}

}  // namespace dtf::testing
