// Small files that would cost much memory and time without a bound. Each reader refuses its bomb
// with a message, within 512 MB and 10 s of processor time (SECURITY.md, "Files").

#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/e2e/cluster_fixture.h"
#include "tests/e2e/limited_run.h"
#include "tests/unit/data/idx_files.h"
#include "tests/unit/data/image_files.h"
#include "tests/unit/data/npy_files.h"

namespace dtf::testing {

class BombsTest : public ClusterTest {
 protected:
  // Runs dtf-launch with these arguments in the test's folder.
  Spent run(std::vector<std::string> argv) {
    argv.insert(argv.begin(), binary("dtf-launch"));
    return runLimited(std::move(argv), folder_.path());
  }

  void expectRefused(const std::string& what, std::vector<std::string> argv,
                     const std::string& words) {
    const Spent spent = run(std::move(argv));
    EXPECT_TRUE(spent.exit_code >= 64 && spent.exit_code <= 78 && spent.exit_code != 70)
        << what << ": " << spent.exit_code << "\n"
        << spent.said.substr(0, 2000);
    EXPECT_NE(spent.said.find(words), std::string::npos) << what << "\n"
                                                         << spent.said.substr(0, 2000);
    EXPECT_LT(spent.memory_kib, kMemoryMaxKib) << what;
    EXPECT_LT(spent.seconds, kSecondsMax) << what;
    EXPECT_LT(spent.said.size(), 100'000u) << what;
  }

  // A job file with this `data` line.
  std::string job(const std::string& data, const std::string& shape = "[1]") {
    return folder_.write("job.yaml",
                         "job: job\nrun_dir: runs/job\ncluster: {ps: [localhost:auto], "
                         "worker: [localhost:auto]}\ntrain:\n  model: {input: {shape: " +
                             shape +
                             "}, layers: [flatten, dense: {units: 2, name: fc}], "
                             "loss: mse}\n  data: {batch_size: 1, train: " +
                             data + "}\n  steps: 1\n  checkpoint: {}\n");
  }
  std::string digits() { return job("{format: digits, count: 10}", "[28, 28]"); }
};

TEST_F(BombsTest, YamlOfAliasesAndOfDepth) {
  std::string aliases = "a: &a " + std::string(500'000, 'x') + "\nb: [";
  for (int i = 0; i < 30'000; ++i) aliases += i == 0 ? "*a" : ", *a";
  folder_.write("aliases.yaml", aliases + "]\n");
  expectRefused("aliases", {"check", "aliases.yaml"}, "aliases stand for more than");
  folder_.write("deep.yaml", std::string(500'000, '[') + std::string(500'000, ']') + "\n");
  expectRefused("depth", {"check", "deep.yaml"}, "nested deeper than");
}

TEST_F(BombsTest, ArchivesOfNumPy) {
  const std::string dictionary =
      "{'descr': '<f4', 'fortran_order': False, 'shape': (300000000,), }";
  std::string zeros = data::npyOf(dictionary, "");
  zeros.resize(zeros.size() + 300'000'000, '\0');  // of 1.2 GB that it promises
  folder_.write("w.npz", data::zipOf({{"fc/weights.npy", zeros}}, true));
  expectRefused("an import", {"import", digits(), "--from", "w.npz", "--layout", "dtf"},
                "bytes, at most");
  expectRefused("a table",
                {"check", job("{format: npz, archive: w.npz, features: fc/weights, "
                              "labels: fc/weights}")},
                "error:");
}

TEST_F(BombsTest, TablesInText) {
  folder_.write("blank.csv.gz", data::gzipped("a,y\n1,0\n" + std::string(300'000'000, '\n')));
  expectRefused("empty lines",
                {"check", job("{format: csv, files: [blank.csv.gz], label_column: y}")},
                "more than 1000000 empty lines");
  folder_.write("quote.csv.gz",
                data::gzipped("a,y\n1,0\n\"" + std::string(300'000'000, 'x') + "\n"));
  expectRefused("a quote", {"check", job("{format: csv, files: [quote.csv.gz], label_column: y}")},
                "is it a stray one?");
  folder_.write("wide.csv.gz", data::gzipped(std::string(100'000'000, ',') + "\n1\n"));
  expectRefused("fields", {"check", job("{format: csv, files: [wide.csv.gz], label_column: y}")},
                "more than 1048576 fields");
  folder_.write("lines.csv.gz",
                data::gzipped("a,y\n1,0\n\"" + std::string(16'700'000, ',') + "\n\",1\n"));
  expectRefused("a quote around delimiters",
                {"check", job("{format: csv, files: [lines.csv.gz], label_column: y}")},
                "is it a stray one?");
}

TEST_F(BombsTest, FilesOfWeights) {
  std::string header(8, '\0');
  header[3] = 5;  // 83 886 080 bytes of header
  folder_.write("deep.safetensors", header + "{\"a\":" + std::string(83'886'075, '['));
  expectRefused("safetensors",
                {"import", digits(), "--from", "deep.safetensors", "--layout", "dtf"}, "error:");
  std::string graph;
  for (int i = 0; i < 5'000'000; ++i) graph.append("\x5a\x00", 2);  // an input without a name
  std::string size;
  for (size_t left = graph.size(); left > 0; left >>= 7)
    size.push_back(static_cast<char>((left & 127) | (left > 127 ? 128 : 0)));
  folder_.write("inputs.onnx", "\x3a" + size + graph);
  expectRefused("onnx", {"import", digits(), "--from", "inputs.onnx"}, "more nodes, weights and");
  // The same bytes as one node with so many inputs.
  for (size_t i = 0; i < graph.size(); i += 2) graph[i] = '\x0a';
  std::string node = "\x0a" + size + graph, outer;
  for (size_t left = node.size(); left > 0; left >>= 7)
    outer.push_back(static_cast<char>((left & 127) | (left > 127 ? 128 : 0)));
  folder_.write("node.onnx", "\x3a" + outer + node);
  expectRefused("an onnx node", {"import", digits(), "--from", "node.onnx"},
                "a node has more than");
  ASSERT_EQ(::mkfifo((folder_.path() + "/pipe.npz").c_str(), 0600), 0);
  expectRefused("a pipe", {"import", digits(), "--from", "pipe.npz", "--layout", "dtf"},
                "not a regular file");
}

TEST_F(BombsTest, Pictures) {
  std::filesystem::create_directories(folder_.path() + "/f/a");
  std::filesystem::create_directories(folder_.path() + "/f/b");
  folder_.write("f/b/0.png", data::pngOf(8, 8, data::plain(64, {1, 2, 3})));
  std::string png = data::pngOf(8, 8, data::plain(64, {1, 2, 3}));
  png.replace(16, 8, std::string("\x00\x00\x7f\xff\x00\x00\x7f\xff", 8));  // 32767 x 32767
  folder_.write("f/a/0.png", png);
  // 8000 x 8000 pixels of one colour, which take no bits.
  folder_.write("f/a/1.webp",
                std::string("RIFF\x20\0\0\0WEBPVP8L\x14\0\0\0\x2f\x3f\xdf\xcf\x07\x07\x50\x81\x54"
                            "\x08\x20\0\x0a\x9a\xfe\xc7\x88\x88\xfe\x07",
                            40));
  const std::string file = job("{format: images, folder: f}", "[8, 8, 3]");
  const Spent spent = run({"up", file, "-q"});
  EXPECT_EQ(spent.exit_code, 65) << spent.said;
  EXPECT_NE(spent.said.find("f/a/0.png"), std::string::npos) << spent.said;
  EXPECT_NE(spent.said.find("f/a/1.webp: too large: the header promises 8000 x 8000 pixels"),
            std::string::npos)
      << spent.said;
}

TEST_F(BombsTest, WhatLiesInARun) {
  const std::string file = digits();
  std::filesystem::create_directories(folder_.path() + "/runs/job");
  folder_.write("runs/job/summary.json", std::string(1'000'000, '[') + std::string(1'000'000, ']'));
  folder_.write("runs/job/launch.json", std::string(1'000'000, '{'));
  for (const char* verb : {"status", "stop", "logs"}) {
    const Spent spent = run({verb, file});
    EXPECT_LT(spent.exit_code, 79) << verb << ": " << spent.said.substr(0, 500);
    EXPECT_NE(spent.exit_code, 70) << verb << ": " << spent.said.substr(0, 500);
    EXPECT_LT(spent.memory_kib, kMemoryMaxKib) << verb;
  }
}

}  // namespace dtf::testing
