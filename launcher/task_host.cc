#include "launcher/task_host.h"

#include "launcher/local_host.h"
#include "launcher/ssh/ssh_hosts.h"

namespace dtf::launcher {

std::unique_ptr<TaskHost> makeTaskHost(const cluster::JobSpec& job, const JobFiles& files,
                                       boost::asio::io_context& io, const Clock& clock,
                                       TaskEvents& events) {
  if (!job.launch.byAgents()) return std::make_unique<LocalHost>(io, clock, events);
  return std::make_unique<SshHosts>(job, files, io, clock, events);
}

}  // namespace dtf::launcher
