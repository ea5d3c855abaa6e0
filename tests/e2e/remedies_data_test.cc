// Remedies of messages about data: tables, arrays, images. Two remedies are not tried because they
// need more than the user's input: another TMPDIR for a full disk, and JPEG images saved anew
// (arithmetic coding, which libjpeg does not write here).

#include "tests/e2e/remedies_fixture.h"
#include "tests/unit/data/idx_files.h"
#include "tests/unit/data/image_files.h"
#include "tests/unit/data/npy_files.h"

namespace dtf::testing {

namespace {

using data::npyOf;

constexpr const char* kDataJob =
    "job: job\nrun_dir: run\ncluster: {worker: [local]}\ntrain:\n"
    "  model: {input: {shape: [2]}, layers: [dense: {units: 2, name: d}], loss: "
    "sparse_categorical_crossentropy}\n"
    "  data: {batch_size: 2, train: {format: csv, files: [t.csv], label_column: y}}\n"
    "  steps: 2\n";
const std::map<std::string, std::string> kDataFiles = {
    {"t.csv", "a,b,y\n1,2,0\n3,4,1\n5,6,0\n7,8,1\n"}};

// Inserts `keys` after the label column.
Edits said(const std::string& keys) {
  return {.job = {{"label_column: y", "label_column: y, " + keys}}};
}
Edits table(const std::string& text) {
  return {.files = {{"t.csv", text}}};
}
Edits both(const std::string& text, std::vector<std::pair<std::string, std::string>> job) {
  return {.job = std::move(job), .files = {{"t.csv", text}}};
}

std::vector<Remedy> remediesOfColumns() {
  using Job = std::vector<std::pair<std::string, std::string>>;
  const std::string city = "a,city,y\n1,rome,0\n3,york,1\n5,rome,0\n7,york,1\n";
  const std::string three = "a,b,id,y\n1,2,5,0\n3,4,6,1\n";
  const std::string place = "categorical_columns: {place: {columns: [city], ";
  const std::string hashed = place + "hash_bucket_size: 4}}";
  const std::pair<std::string, std::string> one_wide = {"shape: [2]", "shape: [1]"};
  const auto label = [](const std::string& keys) {
    return std::pair<std::string, std::string>("label_column: y", "label_column: " + keys);
  };
  const auto looked_up = [](const std::string& keys) {
    return std::pair<std::string, std::string>(
        "[dense", "[embedding: {" + keys + ", output_dim: 2, combiner: sum}, dense");
  };
  return {
      {"'header: false' if it is a record",
       both("1,2,0\n3,4,1\n5,6,0\n", Job{label("3")}),
       {.job = {{"label_column: 3", "label_column: 3, header: false"}}}},
      {"say 'header: true' if they name the columns",
       both("7,8,2\n1,2,0\n3,4,1\n", Job{label("2")}),
       {.job = {{"label_column: 2", "label_column: 2, header: true"}}}},
      {"say 'header: false' if it is one",
       both("5.1,3.5,high\n4.9,3,low\n", Job{label("3, class_names: [low, high]")}),
       {.job = {{"label_column: 3", "label_column: 3, header: false"}}}},
      {"give one of them another name", table("a,a,y\n1,2,0\n3,4,1\n"),
       table("a,b,y\n1,2,0\n3,4,1\n")},
      {"give each a name of its own", table("a,b,y,y\n1,2,0,0\n3,4,1,1\n"),
       table("a,b,y,z\n1,2,0,0\n3,4,1,1\n"), "set model.input.shape to [3]"},
      {"list a column of words under categorical_columns", table(city), said(hashed),
       "set model.input.shape to [1]"},
      {"or leave it out with feature_columns", table(city), said("feature_columns: [a]"),
       "set model.input.shape to [1]"},
      {"set model.input.shape to [1]",
       both(city, said("feature_columns: [a]").job),
       {.job = {one_wide}}},
      {"set model.input.shape to [3]", table(three), {.job = {{"shape: [2]", "shape: [3]"}}}},
      {"choose the columns with feature_columns (numbers)", table(three),
       said("feature_columns: [a, b]")},
      {"and categorical_columns (words, ids)", table(three),
       said("categorical_columns: {id: {columns: [id], hash_bucket_size: 4}}")},
      {"say 'feature_columns: []'",
       both("city,y\nrome,0\nyork,1\n",
            Job{label("y, " + hashed), one_wide, looked_up("input_dim: 4")}),
       said("feature_columns: []")},
      {"for other words there are num_oov_buckets",
       both(city, Job{label("y, " + place + "vocabulary_list: [rome]}}"), one_wide}),
       {.job = {{"[rome]", "[rome], num_oov_buckets: 1"}}}},
      {"for words there are hash_bucket_size and vocabulary_list",
       both(city, Job{label("y, " + place + "}}"), one_wide}),
       {.job = {{"[city], ", "[city], hash_bucket_size: 4"}}}},
      {"already: give the categories another name",
       both(city, Job{label("y, categorical_columns: {labels: {columns: [city], "
                            "hash_bucket_size: 4}}"),
                      one_wide}),
       {.job = {{"labels:", "place:"}}}},
      {"see categorical_columns",
       both(city, Job{label("y, feature_columns: [a]"), one_wide,
                      looked_up("categories: place, input_dim: 4")}),
       {.job = {{"feature_columns: [a]", hashed}}}},
      {"give it at least 4",
       both(city,
            Job{label("y, " + hashed), one_wide, looked_up("categories: place, input_dim: 3")}),
       {.job = {{"input_dim: 3", "input_dim: 4"}}}},
      {"choose the columns of the training data with feature_columns",
       {.job = {{"y}}", "y}, eval: {format: csv, files: [e.csv], label_column: y}}"}}},
       {.job = {{"[e.csv]", "[e.csv], feature_columns: [a, b]"}}}},
  };
}

std::vector<Remedy> remediesOfRecords() {
  const std::string words = "a,b,y\n1,2,low\n3,4,high\n5,6,low\n";
  return {
      {"'class_names: [1, 2]'", table("a,b,y\n1,2,1\n3,4,2\n"), said("class_names: [1, 2]")},
      {"list the classes as the table writes them with class_names",
       table("a,b,y\n1,2,-1\n3,4,1\n"), said("class_names: [-1, 1]")},
      {"list the classes as the table writes them with class_names",
       table("a,b,y\n1,2,0.5\n3,4,1.5\n"), said("class_names: [0.5, 1.5]")},
      {"list the classes as the table writes them with class_names", table(words),
       said("class_names: [low, high]")},
      {"give it at least 3 units, or use other labels",
       table("a,b,y\n1,2,0\n3,4,1\n5,6,2\n"),
       {.job = {{"units: 2", "units: 3"}}}},
      {"or use other labels", table("a,b,y\n1,2,0\n3,4,1\n5,6,2\n"), table(kDataFiles.at("t.csv"))},
      {"give it at least 3",
       both(words, said("class_names: [low, high, medium]").job),
       {.job = {{"units: 2", "units: 3"}}},
       "1 of the 3 classes has no example"},
      {"Take a class that there isn't out of class_names",
       both(words, {{"label_column: y", "label_column: y, class_names: [low, high, medium]"},
                    {"units: 2", "units: 3"}}),
       {.job = {{", medium", ""}}}},
      {"did you mean 'high'?",
       both("a,b,y\n1,2,low\n3,4,high\n5,6,highh\n", said("class_names: [low, high]").job),
       table(words)},
      {"raise max_bad_records of data.train or data.eval to 1",
       table("a,b,y\n1,2,0\n3,,1\n5,6,1\n"), said("max_bad_records: 1")},
      {"leave it out with max_bad_records", table("a,b,y\n1,2,0\n3,NA,1\n5,6,1\n"),
       said("max_bad_records: 1")},
      {"or leave the column out with feature_columns", table("a,b,y\n1,2,0\n3,NA,1\n5,6,1\n"),
       said("feature_columns: [a]"), "set model.input.shape to [1]"},
      {"or mend the rows", table("a,b,y\n1,2,0\n3,,1\n5,6,1\n"),
       table("a,b,y\n1,2,0\n3,4,1\n5,6,1\n")},
      {"is it a stray one?", table("a,b,y\n1,2,0\n3,\"4,1\n5,6\",1\n7,8,0\n"),
       table("a,b,y\n1,2,0\n3,4,1\n5,6,1\n7,8,0\n")},
      {"the quote in this line is never closed", table("a,b,y\n1,2,0\n3,\"4,1\n5,6,1\n"),
       table("a,b,y\n1,2,0\n3,4,1\n5,6,1\n")},
      {"text in UTF-16 (save it as UTF-8)",
       table(std::string("\xff\xfe"
                         "a\0,\0",
                         6)),
       table("\xef\xbb\xbf" + kDataFiles.at("t.csv"))},
      {"a file packed by zstd; expected a table in text", table("\x28\xb5\x2f\xfd ..."),
       table(kDataFiles.at("t.csv"))},
      {"neither gzip nor padding; fetch it again",
       table(data::gzipped(kDataFiles.at("t.csv")) + "x"),
       table(data::gzipped(kDataFiles.at("t.csv")) + std::string(1000, '\0'))},
      {"choose a batch_size from 1 to 4",
       {.job = {{"batch_size: 2", "batch_size: 5"}}},
       {.job = {{"batch_size: 5", "batch_size: 4"}}}},
      {"'files' is empty: name at least one file",
       {.job = {{"[t.csv]", "[]"}}},
       {.job = {{"[]", "[t.csv]"}}}},
      {"a column of words to learn is a label_column, with class_names",
       both(words, {{"label_column: y", "target_columns: [y]"},
                    {"units: 2", "units: 1"},
                    {"sparse_categorical_crossentropy", "mse"}}),
       {.job = {{"target_columns: [y]", "label_column: y, class_names: [low, high]"}}}},
      {"give it a larger one, or use other data",
       {.job = {{"[dense", "[embedding: {input_dim: 4, output_dim: 2, combiner: sum}, dense"}}},
       {.job = {{"input_dim: 4", "input_dim: 9"}}}},
  };
}

// A job on x.npy and y.npy.
Edits arrays(const std::string& x, const std::string& y,
             const std::string& keys = "labels: y.npy") {
  return {.job = {{"{format: csv, files: [t.csv], label_column: y}",
                   "{format: npy, features: x.npy, " + keys + "}"}},
          .files = {{"x.npy", x}, {"y.npy", y}}};
}

std::vector<Remedy> remediesOfArrays() {
  const std::string x = npyOf<float>("<f4", "(2, 2)", {1, 2, 3, 4});
  const std::string y = npyOf<int64_t>("<i8", "(2,)", {0, 1});
  const std::string bytes = npyOf<uint8_t>("|u1", "(2, 2)", {1, 2, 3, 4});
  const auto labels = [](const std::string& good) { return Edits{.files = {{"y.npy", good}}}; };
  const std::string texts =
      npyOf("{'descr': '|S3', 'fortran_order': False, 'shape': (2,), }", std::string("no\0yes", 6));
  Edits looked_up = arrays(x, y, "labels: y.npy, features_as: float32");
  looked_up.job.emplace_back("[dense",
                             "[embedding: {input_dim: 9, output_dim: 2, combiner: sum}, dense");
  Edits evaluated = arrays(x, y);
  evaluated.job.emplace_back("labels: y.npy}",
                             "labels: y.npy}, eval: {format: npy, features: "
                             "e.npy, labels: y.npy}");
  evaluated.files["e.npy"] = npyOf<float>("<f4", "(2, 3)", {1, 2, 3, 4, 5, 6});
  return {
      {"Say 'features_as: pixels'",
       arrays(bytes, y),
       {.job = {{"labels: y.npy", "labels: y.npy, features_as: pixels"}}}},
      {"or 'features_as: float32'",
       arrays(bytes, y),
       {.job = {{"labels: y.npy", "labels: y.npy, features_as: float32"}}}},
      {"for NumPy's arrays say 'features_as: indices'",
       looked_up,
       {.job = {{"features_as: float32", "features_as: indices"}}}},
      {"save them with a.astype('int64')", arrays(x, npyOf<float>("<f4", "(2,)", {0, 1})),
       labels(y)},
      {"numbers to learn are named by 'targets'",
       arrays(x, npyOf<float>("<f4", "(2,)", {0, 1})),
       {.job = {{"labels: y.npy", "targets: y.npy"}, {"sparse_categorical_crossentropy", "mse"}}},
       "give it as many"},
      {"number them, as np.unique(a, return_inverse=True)[1] does", arrays(x, texts), labels(y)},
      {"number them, as np.unique(a, return_inverse=True)[1] does",
       arrays(x, npyOf<int64_t>("<i8", "(2,)", {-1, 1})), labels(y)},
      {"for an array subtract 1", arrays(x, npyOf<int64_t>("<i8", "(2,)", {1, 2})), labels(y)},
      {"of one-hot labels save a.argmax(1)",
       arrays(x, npyOf<int64_t>("<i8", "(2, 2)", {1, 0, 0, 1})), labels(y)},
      {"save a.real and a.imag",
       arrays(npyOf<double>("<c8", "(1, 2)", {1, 2}), y),
       {.files = {{"x.npy", x}}}},
      {"convert it, as with a.astype('float32')",
       arrays(npyOf<double>("<f16", "(1, 2)", {1, 2, 3, 4}), y),
       {.files = {{"x.npy", x}}}},
      {"needs 'labels' for classes",
       arrays(x, y, "features_as: float32"),
       {.job = {{"features_as", "labels: y.npy, features_as"}}}},
      {"evaluate on data of the shape that it trains on", evaluated, {.files = {{"e.npy", x}}}},
      {"expected a NumPy array (.npy)", arrays("a,b\n1,2\n", y), {.files = {{"x.npy", x}}}},
  };
}

std::vector<Remedy> remediesOfImages() {
  const std::string png = data::pngOf(4, 4, data::plain(16, {1, 2, 3}));
  const std::vector<std::pair<std::string, std::string>> job = {
      {"{format: csv, files: [t.csv], label_column: y}", "{format: images, folder: pics}"},
      {"[2]", "[4, 4, 3]"},
      {"[dense", "[flatten, dense"}};
  const std::vector<std::pair<std::string, std::string>> cifar = {
      {"{format: csv, files: [t.csv], label_column: y}", "{format: cifar10, files: [c.bin]}"},
      {"[2]", "[32, 32, 3]"},
      {"[dense: {units: 2", "[flatten, dense: {units: 10"}};
  const std::string image(3072, '\7');
  return {
      {"put the images of each class into a subfolder",
       {.job = job, .files = {{"pics/0.png", png}, {"pics/1.png", png}}},
       {.files = {{"pics/a/0.png", png}, {"pics/b/1.png", png}}}},
      {"each class is one, with its images",
       {.job = job, .files = {{"pics/.hidden", ""}}},
       {.files = {{"pics/a/0.png", png}, {"pics/b/1.png", png}}}},
      {"a GIF image; expected a PNG, JPEG, WebP or BMP image",
       {.job = job,
        .files = {{"pics/a/0.png", png}, {"pics/b/1.gif", "GIF89a......"}},
        .argv = {"up", "-q"}},
       {.files = {{"pics/b/1.png", png}}, .removed = {"pics/b/1.gif"}}},
      {"or its subfolder away",
       {.job = job,
        .files = {{"pics/a/0.png", png}, {"pics/a/1.png", png}, {"pics/b/.hidden", ""}},
        .argv = {"up", "-q"}},
       {.removed = {"pics/b"}}},
      {"Say format: cifar100",
       {.job = cifar, .files = {{"c.bin", "\4\x3e" + image + "\13\7" + image}}},
       {.job = {{"format: cifar10", "format: cifar100"}, {"units: 10", "units: 100"}}}},
  };
}

}  // namespace

using RemediesDataTest = RemediesTest;

TEST_F(RemediesDataTest, OfColumns) {
  std::map<std::string, std::string> files = kDataFiles;
  files["e.csv"] = "a,b,id,y\n1,2,9,0\n";
  expectRemedies(kDataJob, files, remediesOfColumns());
}

TEST_F(RemediesDataTest, OfRecords) {
  expectRemedies(kDataJob, kDataFiles, remediesOfRecords());
}

TEST_F(RemediesDataTest, OfArrays) {
  expectRemedies(kDataJob, kDataFiles, remediesOfArrays());
}

TEST_F(RemediesDataTest, OfImages) {
  expectRemedies(kDataJob, kDataFiles, remediesOfImages());
}

}  // namespace dtf::testing
