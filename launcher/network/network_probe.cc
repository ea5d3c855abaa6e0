#include "launcher/network/network_probe.h"

#include <utility>

#include "common/base/check.h"
#include "common/cluster/address.h"
#include "launcher/network/interfaces.h"

namespace dtf::launcher {

namespace {

ProbeAddress addressOf(const std::string& listening) {
  cluster::Address address;
  const std::string wrong = cluster::parseAddress(listening, address);
  DTF_CHECK_MSG(wrong.empty(), listening);
  return {address.host, interfaceOf(address.host), address.port};
}

}  // namespace

NetworkProbe::NetworkProbe(Options options)
    : options_(std::move(options)), io_("probe", {}, options_.credentials) {
  listen(options_.host);
  // Where a name leads is known when it is bound.
  const std::string own = addresses_[0].address;
  if (cluster::isLoopback(own)) return;
  if (!options_.reachable) throw Error(ErrorCode::kBadConfig, cluster::refusalToListen(own));
  listenBesides(own);
}

NetworkProbe::~NetworkProbe() {
  io_.call([this] { under_way_.reset(); });
}

void NetworkProbe::listen(const std::string& address) {
  servers_.push_back(
      std::make_unique<wire::ProbeServer>(io_, options_.identity, address, options_.credentials));
  addresses_.push_back(addressOf(servers_.back()->listening()));
}

void NetworkProbe::listenBesides(const std::string& own) {
  for (const InterfaceAddress& other : interfaceAddresses()) {
    if (other.address == own || addresses_.size() == kProbeAddressesMax) continue;
    try {
      listen(other.address);
    } catch (const Error&) {
      // Such as one that the kernel still looks for on the link: no task could listen there,
      // either.
    }
  }
}

void NetworkProbe::measure(const Measure& order, std::function<void(const Measured&)> answer) {
  io_.post([this, order, tell = std::move(answer)] {
    under_way_.reset();
    wire::ProbeTarget target{order.to, order.identity, order.task};
    under_way_.emplace(
        io_, std::move(target), order.is_brief ? wire::kBriefProbe : wire::ProbeEffort(),
        [order, tell](const wire::LinkFigures& figures) {
          tell({order.number, figures.bytes_per_second, figures.round_trip_us, {}});
        },
        [order, tell](const Error& error) {
          tell({order.number, 0, 0, error.message()});
        });
  });
}

}  // namespace dtf::launcher
