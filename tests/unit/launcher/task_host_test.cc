#include "launcher/task_host.h"

#include <gtest/gtest.h>

#include "common/net/asio.h"
#include "launcher/local_host.h"
#include "launcher/ssh/ssh_hosts.h"

namespace dtf::launcher {
namespace {

using Via = cluster::LaunchSpec::Via;

class TaskHostTest : public ::testing::Test {
 protected:
  std::unique_ptr<TaskHost> hostFor(Via via) {
    job_.launch.via = via;
    job_.run_dir = "run";
    return makeTaskHost(job_, {}, io_, clock_, events_);
  }
  cluster::JobSpec job_;
  boost::asio::io_context io_;
  SystemClock clock_;
  NoTaskEvents events_;
};

TEST_F(TaskHostTest, TasksRunHereUnlessTheFileSaysOtherwise) {
  EXPECT_NE(dynamic_cast<LocalHost*>(hostFor(Via::kLocal).get()), nullptr);
}

TEST_F(TaskHostTest, OverSshAndInSlurmAgentsRunThem) {
  for (const Via via : {Via::kSsh, Via::kSlurm})
    EXPECT_NE(dynamic_cast<SshHosts*>(hostFor(via).get()), nullptr);
}

}  // namespace
}  // namespace dtf::launcher
