#pragma once

// A host's part in `dtf-launch check --network`: it takes what others measure, and measures itself.
// In a dtf-agent over ssh, in dtf-launch itself for the host that it is on.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/net/reactor.h"
#include "common/wire/network_probe.h"
#include "launcher/network/measurement.h"

namespace dtf::launcher {

// Owns: a thread with a loop, listeners and connections.
// Threads: one; `answer` is called on its own thread.
// Blocks: constructor, on the name resolution of `host`; the others don't.
class NetworkProbe {
 public:
  struct Options {
    std::string host;        // as the cluster file has it: tasks listen there
    std::string identity;    // of this process alone
    bool reachable = false;  // whether tasks may listen where others can connect
    net::Credentials credentials{};
  };

  // Listens at the host's address, and, unless that is loopback, at those of the host's other
  // interfaces at which it is possible, at most kProbeAddressesMax.
  // Errors: those of net::Listener, of the host's; kBadConfig for one that tasks may not listen at.
  explicit NetworkProbe(Options options);
  ~NetworkProbe();

  // The first is the host's.
  const std::vector<ProbeAddress>& addresses() const { return addresses_; }

  // What goes wrong with the measurement is its answer. One at a time: one that is under way is
  // given up, and not answered.
  void measure(const Measure& order, std::function<void(const Measured&)> answer);

 private:
  void listen(const std::string& address);
  void listenBesides(const std::string& own);

  const Options options_;
  std::vector<ProbeAddress> addresses_;
  net::IoThread io_;
  std::vector<std::unique_ptr<wire::ProbeServer>> servers_;  // of the addresses, in their order
  std::optional<wire::LinkMeasurement> under_way_;           // of the loop
};

}  // namespace dtf::launcher
