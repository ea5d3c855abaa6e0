#include "common/host/remote_loan.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "common/base/error.h"
#include "common/base/shared_memory.h"
#include "common/wire/remote_codec.h"

namespace dtf::host {

RemoteLoan::RemoteLoan(net::Loop& loop, std::shared_ptr<net::RemoteDomain> domain,
                       uint64_t elements)
    : domain_(std::move(domain)),
      elements_(elements),
      gradient_(std::make_shared<Buffer>(Buffer::shared(elements * sizeof(float)))),
      channel_(net::RemoteChannel::open(loop, domain_)) {
  DTF_CHECK(elements_ > 0);
  gradient_arena_ = domain_
                        ->registered({gradient_->as<std::byte>(), elements_ * sizeof(float)},
                                     gradient_, net::RemoteAccess::kWrite)
                        ->arena();
  gradient_arena_.key = gradient_->sharedMemory()->key();
}

void RemoteLoan::describe(schema::PsData::OpenRemoteResults::Builder reply) const {
  reply.setUcx(domain_->version());
  reply.setAddress(wire::dataOf(channel_->address()));
  reply.setGradientKey(gradient_arena_.key);
  wire::encodeRemoteArena(gradient_arena_, reply.initGradient());
}

arena::Gradient RemoteLoan::gradient(uint64_t key) const {
  if (key != gradient_arena_.key)
    throw Error(ErrorCode::kBadData,
                fmt::format("a gradient in memory {:016x}, which was not lent for it", key));
  arena::Gradient gradient{{gradient_->as<float>(), elements_}, gradient_};
  gradient.is_lent = true;
  return gradient;
}

void RemoteLoan::offer(const std::shared_ptr<const SharedMemory>& memory) {
  new_ = domain_->registered({memory->data(), memory->bytes()}, memory, net::RemoteAccess::kRead)
             ->arena();
  new_->key = memory->key();
}

}  // namespace dtf::host
