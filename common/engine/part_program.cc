#include "common/engine/part_program.h"

#include <optional>
#include <utility>

#include "common/base/check.h"

namespace dtf::engine {

PartProgram::~PartProgram() = default;
PartProgram::PartProgram(PartProgram&&) noexcept = default;

Bytes PartProgram::bytesOf(const Source& source, const PartInputs& inputs) const {
  const auto bytes = [](const Variable::Value& value) -> Bytes {
    DTF_CHECK(value != nullptr);
    return {value->data(), value->bytes()};
  };
  switch (source.kind) {
    case Source::Kind::kFeed:
      return inputs.feeds[source.index];
    case Source::Kind::kVariable:
      return bytes(inputs.held.read[source.index]);
    case Source::Kind::kArrival:
      return inputs.arrivals[source.index].bytes;
    case Source::Kind::kConstant:
      return constants_->fetchBytes(static_cast<int>(source.index));
    case Source::Kind::kResult:
      if (programs_[source.index].action) return bytes(inputs.held.given[source.index]);
      if (const std::optional<HostAction>& host = programs_[source.index].host)
        return host->act->output(host->outputs.at(source.result));
      if (pieces_[source.index].may_wait) {
        const Program& waited = programs_[source.index];
        const std::vector<size_t>& outputs =
            waited.queue ? waited.queue->outputs : waited.replicas->outputs;
        const Tensor& output =
            inputs.held.taken.at(source.index).outputs.at(outputs[source.result]);
        return {output.data(), output.bytes()};
      }
      return programs_[source.index].step->fetchBytes(static_cast<int>(source.result));
  }
  return {};
}

void PartProgram::begin(PartInputs& inputs) {
  DTF_CHECK(inputs.feeds.size() == feeds_.size() && inputs.variables.size() == variables_.size() &&
            inputs.queues.size() == queues_.size() && inputs.arrivals.size() == receives_.size());
  if (constants_ != nullptr && !has_constants_) {
    constants_->run();
    has_constants_ = true;
  }
  inputs.held.begun = true;
  inputs.held.read.resize(variables_.size());
  inputs.held.given.resize(programs_.size());
  for (size_t i = 0; i < variables_.size(); ++i) {
    if (uses_[i].is_read) inputs.held.read[i] = inputs.variables[i]->read();
    inputs.held.readers.push_back(uses_[i].readers);
  }
}

void PartProgram::bind(Program& program, const PartInputs& inputs) const {
  for (const Binding& binding : program.bindings) {
    const Bytes bytes = bytesOf(binding.source, inputs);
    if (binding.is_parameter) {
      program.step->bindParameter(binding.handle, reinterpret_cast<const float*>(bytes.data()));
    } else {
      program.step->bindInput(binding.handle, bytes.data());
    }
  }
}

void PartProgram::act(size_t piece, PartInputs& inputs) {
  Program& program = programs_[piece];
  const Action& action = *program.action;
  Variable& variable = *inputs.variables[action.variable];
  Variable::Value given;
  if (program.step == nullptr) {
    given = variable.read();
  } else {
    given = variable.change(action.needs_value, [&](const std::byte* before, std::byte* after) {
      // It must be bound even if it reads nothing of the old value.
      program.step->bindInput(action.before, before == nullptr ? after : before);
      program.step->bindGradient(action.after, reinterpret_cast<float*>(after));
      program.step->run();
    });
  }
  if (action.is_read) inputs.held.given[piece] = std::move(given);
}

void PartProgram::actOnHost(const HostAction& action, const PartInputs& inputs) const {
  std::vector<Variable*> variables;
  for (const size_t variable : action.variables) variables.push_back(inputs.variables[variable]);
  std::vector<Bytes> values;
  for (const Source& input : action.inputs) values.push_back(bytesOf(input, inputs));
  action.act->run(variables, values);
}

std::vector<PartProgram::Send> PartProgram::run(size_t piece, PartInputs& inputs) {
  DTF_CHECK(piece < programs_.size());
  if (!inputs.held.begun) begin(inputs);
  Program& program = programs_[piece];
  bind(program, inputs);
  if (program.action) {
    act(piece, inputs);
  } else if (program.host) {
    actOnHost(*program.host, inputs);
  } else if (program.step) {
    program.step->run();
  }
  std::vector<Send> sends;
  for (const auto& [edge, source] : program.sends) sends.push_back({edge, bytesOf(source, inputs)});
  release(program, inputs);
  return sends;
}

// Releases values without further readers, which may then be changed in place.
void PartProgram::release(const Program& program, PartInputs& inputs) const {
  for (const size_t variable : program.reads) {
    DTF_CHECK(inputs.held.readers[variable] > 0);
    if (--inputs.held.readers[variable] == 0 && !uses_[variable].is_kept)
      inputs.held.read[variable] = nullptr;
  }
}

Awaited::Wait PartProgram::start(size_t piece, PartInputs& inputs, FifoQueue::Done done) {
  DTF_CHECK(piece < programs_.size() && pieces_[piece].may_wait);
  if (!inputs.held.begun) begin(inputs);
  const Program& program = programs_[piece];
  const std::vector<Source>& sources =
      program.queue ? program.queue->inputs : program.replicas->inputs;
  std::vector<Bytes> values;
  for (const Source& input : sources) values.push_back(bytesOf(input, inputs));
  const Awaited::Wait wait =
      program.queue
          ? program.queue->act.start(*inputs.queues[program.queue->queue], values, std::move(done))
          : program.replicas->act.start(*inputs.variables[program.replicas->global_step], values,
                                        std::move(done));
  release(program, inputs);
  return wait;
}

void PartProgram::finish(size_t piece, PartInputs& inputs, FifoQueue::Elements elements) const {
  const Program& program = programs_[piece];
  inputs.held.taken[piece] = program.queue ? program.queue->act.finish(std::move(elements))
                                           : program.replicas->act.finish(std::move(elements));
}

Awaited& PartProgram::awaitedOf(size_t piece, const PartInputs& inputs) const {
  const Program& program = programs_[piece];
  if (program.queue) return *inputs.queues[program.queue->queue];
  return inputs.variables[program.replicas->global_step]->barrier();
}

std::string PartProgram::actText(size_t piece) const {
  const Program& program = programs_[piece];
  if (!program.queue)
    return program.replicas->act.op() + " " + variables_[program.replicas->global_step].key.name;
  return program.queue->act.op() + " " + queues_[program.queue->queue].key.name;
}

std::string PartProgram::awaited(size_t piece, const PartInputs& inputs) const {
  const Program& program = programs_[piece];
  if (program.queue) return program.queue->act.awaited(*inputs.queues[program.queue->queue]);
  return program.replicas->act.awaited(*inputs.variables[program.replicas->global_step]);
}

Bytes PartProgram::fetch(size_t i, const PartInputs& inputs) const {
  DTF_CHECK(i < fetches_.size());
  return bytesOf(fetches_[i], inputs);
}

}  // namespace dtf::engine
