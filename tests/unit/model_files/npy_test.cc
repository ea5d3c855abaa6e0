#include "common/model_files/npy.h"

#include <gtest/gtest.h>

namespace dtf::model_files {
namespace {

// Headers as numpy.lib.format.header_data_from_array_1_0() writes them; in
// tests/e2e/export_python_test.py NumPy reads one.
TEST(Npy, HeadersAreNumpysOwn) {
  const std::pair<Shape, std::string> shapes[] = {
      {Shape{}, "()"}, {Shape{7}, "(7, )"}, {Shape{3, 4}, "(3, 4)"}, {Shape{0, 4, 5}, "(0, 4, 5)"}};
  for (const auto& [shape, text] : shapes) {
    const std::string header = npyHeader(DType::kFloat32, shape);
    EXPECT_EQ(header.size() % 64, 0u);
    EXPECT_EQ(header.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
    const auto low = static_cast<unsigned char>(header[8]);
    const auto high = static_cast<unsigned char>(header[9]);
    EXPECT_EQ(low + 256u * high, header.size() - 10);
    EXPECT_EQ(header.find("{'descr': '<f4', 'fortran_order': False, 'shape': " + text + ", }"), 10u)
        << header;
    EXPECT_EQ(header.back(), '\n');
  }
  EXPECT_NE(npyHeader(DType::kUInt8, Shape{2}).find("'|u1'"), std::string::npos);
  EXPECT_NE(npyHeader(DType::kInt32, Shape{2}).find("'<i4'"), std::string::npos);
  EXPECT_NE(npyHeader(DType::kInt64, Shape{2}).find("'<i8'"), std::string::npos);
}

}  // namespace
}  // namespace dtf::model_files
