#include "common/host/parameter_replies.h"

#include <optional>
#include <span>

#include "common/arena/codecs/float32.h"
#include "common/base/error.h"
#include "common/base/trace.h"

namespace dtf::host {

namespace {

const arena::ModelDeclaration& modelOf(ShardHost& host) {
  return host.shard().declaration().value();
}

}  // namespace

ParameterReplies::ParameterReplies(ShardHost& host, uint32_t ps_task, uint32_t rank)
    : host_(host),
      codecs_(arena::codecOf(modelOf(host).replication), modelOf(host).layout, ps_task),
      exact_(std::make_unique<arena::Float32Codec>(codecs_.whole().elements())),
      sent_rows_(arena::GradientLayout(modelOf(host).layout, ps_task), codecs_.rowsAlone()),
      rank_(rank) {}

ReplyParts ParameterReplies::of(const std::shared_ptr<const arena::ParameterVersion>& parameters,
                                const ReplyForm& form) {
  if (parameters->elements() != codecs_.whole().elements())
    throw Error(ErrorCode::kUnavailable, "another model was declared meanwhile");
  ReplyParts reply;
  reply.parts.push_back(leadingPart(parameters, form, reply));
  if (!form.rows.isWhole()) {
    const trace::Span span("gather rows");
    reply.parts.push_back(sent_rows_.of(*parameters, form.rows));
  } else if (reply.is_changed && codecs_.rowsAlone() != nullptr) {
    reply.parts.push_back({std::as_bytes(std::span(parameters->data(), parameters->elements())
                                             .subspan(codecs_.change()->elements())),
                           parameters});
  }
  return reply;
}

wire::ArenaPart ParameterReplies::leadingPart(
    const std::shared_ptr<const arena::ParameterVersion>& parameters, const ReplyForm& form,
    ReplyParts& reply) {
  if (form.is_exact) return host_.encodedParameters().of(parameters, *exact_);
  const bool is_whole = form.rows.isWhole();
  if (const arena::ChangeCodec* const change = codecs_.change()) {
    const ChangedParameters::Version version{parameters, form.epoch};
    const std::optional<ChangedParameters::Sent> sent =
        host_.changedParameters().changeFor(rank_, form.base, version, *change);
    reply.is_changed = sent.has_value();
    reply.base = sent ? sent->base : host_.changedParameters().sentWhole(rank_, version);
    if (sent) return sent->part;
  }
  return host_.encodedParameters().of(parameters, is_whole ? codecs_.whole() : codecs_.dense());
}

}  // namespace dtf::host
