#include "common/data/npy_reader.h"

#include <gtest/gtest.h>

#include <cstring>

#include "common/base/error.h"
#include "tests/unit/data/idx_files.h"
#include "tests/unit/data/npy_files.h"

namespace dtf::data {
namespace {

std::string mistake(const std::string& file, uint64_t bytes_max = kNpyBytesMax) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.write("x.npy", file);
  try {
    readNpy(path, bytes_max);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadData);
    EXPECT_EQ(error.message().find(path.string() + ": "), 0u) << error.message();
    return error.message().substr(path.string().size() + 2);
  }
  return "";
}

TEST(NpyReader, ReadsEachTypeAndVersionPlainAndPacked) {
  const TemporaryFolder folder;
  const std::string file = npyOf<float>("<f4", "(2, 3)", {1, 2, 3, 4, 5, 6.5F});
  for (const std::string& bytes : {file, gzipped(file)}) {
    const std::filesystem::path path = folder.write("x.npy", bytes);
    const NpyArray array = readNpy(path);
    EXPECT_EQ(array.header.type, NpyType::kFloat32);
    EXPECT_EQ(array.header.dims, (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(array.header.exampleShape(), Shape{3});
    float last = 0;
    std::memcpy(&last, array.bytes.data() + 20, sizeof last);
    EXPECT_EQ(last, 6.5F);
    EXPECT_EQ(readNpyHeader(path).dims, array.header.dims);
  }
  EXPECT_EQ(mistake(npyOf<double>("<f8", "(1,)", {1}, 2)), "");
  EXPECT_EQ(mistake(npyOf<uint8_t>("|u1", "(3,)", {1, 2, 3}, 3)), "");
  EXPECT_EQ(mistake(npyOf<int32_t>("<i4", "(1, 1, 1)", {1})), "");
  EXPECT_EQ(mistake(npyOf<int64_t>("<i8", "()", {1})), "");
  EXPECT_EQ(mistake(npyOf("{\"shape\":(0,4),'fortran_order':False,'descr':'<f4'}", "")), "")
      << "in any order";
}

TEST(NpyReader, NamesWhatItDoesNotRead) {
  EXPECT_EQ(mistake(""), "the file is empty");
  EXPECT_EQ(mistake("label,pixel0\n1,2\n"),
            "this looks like text such as CSV, 'label,pixel0'; expected a NumPy array (.npy)");
  EXPECT_EQ(mistake(npyOf("{}", "", 4)), "version 4 of .npy; 1 to 3 are read");
  EXPECT_EQ(mistake(npyOf<double>("<c8", "(1,)", {1})),
            "the elements are '<c8', and float16 to float64, bool, and whole numbers of 8 to 64 "
            "bits are read; these are complex numbers: save a.real and a.imag");
  // Texts can't be converted.
  for (const std::string text : {"<U5", "|S3"})
    EXPECT_NE(mistake(npyOf("{'descr': '" + text + "', 'fortran_order': False, 'shape': (1,), }",
                            std::string(20, 'x')))
                  .find("are read; these are texts: number them, as np.unique(a, "
                        "return_inverse=True)[1] does, or save a table (format: csv)"),
              std::string::npos);
  EXPECT_NE(mistake(npyOf<double>("|O", "(1,)", {1})).find("these are objects of Python"),
            std::string::npos);
  EXPECT_NE(mistake(npyOf<double>("<M8[s]", "(1,)", {1})).find("convert it, as with a.astype("),
            std::string::npos);
  EXPECT_EQ(
      mistake(npyOf("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "")),
      "the array has records of fields: save one array for each part");
}

TEST(NpyReader, NamesWhatIsDamaged) {
  const std::string good = npyOf<float>("<f4", "(4,)", {1, 2, 3, 4});
  EXPECT_EQ(mistake(good.substr(0, good.size() - 1)),
            "truncated: the header promises float32 of [4], the file holds at most 15 bytes");
  EXPECT_EQ(mistake(good + "x"), "trailing bytes: the header promises 16, the file holds 17");
  EXPECT_EQ(mistake(gzipped(good + "x")), "trailing bytes after the elements");
  EXPECT_EQ(mistake(good.substr(0, 30)), "truncated: the file ends in the header");
  EXPECT_EQ(mistake(good, 15), "too large: 16 bytes, at most 15 are read");
  EXPECT_EQ(mistake(npyOf("{'descr': '<f4', 'fortran_order': False, 'shape': "
                          "(4611686018427387904, 4611686018427387904), }",
                          ""))
                .find("truncated: the header promises"),
            0u);
  for (const char* dictionary :
       {"", "{", "{}", "{'shape': (1,), }", "{'descr': '<f4', 'fortran_order': Maybe}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,) } x", "{'descr': '<f4}",
        "{'size': 3}", "{'descr': '<f4', 'fortran_order': False, 'shape': (1 1), }"})
    EXPECT_EQ(mistake(npyOf(dictionary, "")).find("the header of this .npy can't be read: "), 0u)
        << dictionary;
}

TEST(NpyReader, ElementsThatAreNotReadAreToldFromDamage) {
  const auto unread = [](const std::string& file) {
    return unreadNpyElements({reinterpret_cast<const uint8_t*>(file.data()), file.size()});
  };
  EXPECT_EQ(unread(npyOf<float>("<f4", "(1,)", {1})), "");
  EXPECT_EQ(unread(npyOf("{'descr': '<U5', 'fortran_order': False, 'shape': (1,), }", "")), "<U5");
  const std::string texts =
      npyOf("{'descr': '<U5', 'fortran_order': False, 'shape': (3, 1), }", "");
  std::vector<int64_t> dims;
  unreadNpyElements({reinterpret_cast<const uint8_t*>(texts.data()), texts.size()}, &dims);
  EXPECT_EQ(dims, (std::vector<int64_t>{3, 1}));
  EXPECT_EQ(unread("no array"), "");
  EXPECT_EQ(unread(npyOf("{'descr': '<U5'", "")), "") << "damaged";
}

}  // namespace
}  // namespace dtf::data
