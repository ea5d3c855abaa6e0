#include "common/base/processor_name.h"

#include <gtest/gtest.h>

namespace dtf {
namespace {

TEST(ProcessorName, IsThatOfTheFirstCore) {
  EXPECT_EQ(processorNameIn("processor\t: 0\nmodel\t\t: 17\nmodel name\t: AMD EPYC 9B45\n"
                            "processor\t: 1\nmodel name\t: other\n"),
            "AMD EPYC 9B45");
  EXPECT_EQ(processorNameIn("model name\t: no line end"), "no line end");
}

TEST(ProcessorName, SomeHostsDontTell) {
  for (const char* const text : {"", "\n", "processor\t: 0\nBogoMIPS\t: 50.00\n", "model name\n"})
    EXPECT_EQ(processorNameIn(text), "unknown CPU") << text;
  EXPECT_NE(processorName(), "");
}

}  // namespace
}  // namespace dtf
