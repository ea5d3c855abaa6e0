// The boundary for exceptions, seen through the functions of libdtf.

#include <dtf/dtf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace dtf::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

dtf_code failedNode(const char* op) {
  dtf_graph* graph = nullptr;
  EXPECT_EQ(dtf_graph_new(&graph), DTF_OK);
  dtf_node* node = nullptr;
  EXPECT_EQ(dtf_node_new(graph, op, "n", &node), DTF_OK);
  int32_t id = 0;
  const dtf_code code = dtf_node_add(node, &id);
  dtf_graph_free(graph);
  return code;
}

TEST(Guarded, AnErrorBecomesItsCodeAndItsSentence) {
  EXPECT_EQ(failedNode("NoSuchOp"), DTF_BAD_CONFIG);
  EXPECT_THAT(dtf_error_message(), HasSubstr("NoSuchOp"));
}

TEST(Guarded, EachThreadHasItsOwnMessage) {
  EXPECT_EQ(failedNode("FirstOp"), DTF_BAD_CONFIG);
  std::thread other([] {
    EXPECT_THAT(std::string(dtf_error_message()), Not(HasSubstr("FirstOp")));
    EXPECT_EQ(failedNode("OtherOp"), DTF_BAD_CONFIG);
    EXPECT_THAT(dtf_error_message(), HasSubstr("OtherOp"));
  });
  other.join();
  EXPECT_THAT(dtf_error_message(), HasSubstr("FirstOp"));
}

}  // namespace
}  // namespace dtf::testing
