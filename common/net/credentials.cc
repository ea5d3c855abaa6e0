#include "common/net/credentials.h"

#include <string>
#include <utility>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/net/own_user.h"

namespace dtf::net {

Credentials Credentials::ownUser() {
  const std::string problem = whyOwnersAreUnknown();
  if (problem.empty()) return {};
  log::warning("event=loopback_open reason=\"{}: every user of this host may connect\"", problem);
  return insecure();
}

Credentials Credentials::ofKeys(std::shared_ptr<TlsKeys> keys) {
  DTF_CHECK(keys != nullptr);
  Credentials credentials;
  credentials.keys_ = std::move(keys);
  return credentials;
}

Credentials Credentials::insecure() {
  Credentials credentials;
  credentials.is_insecure_ = true;
  return credentials;
}

}  // namespace dtf::net
