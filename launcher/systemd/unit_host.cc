#include "launcher/systemd/unit_host.h"

#include <fmt/format.h>

#include <utility>

#include "common/base/check.h"

namespace dtf::launcher {

namespace {

// Longer than one systemctl may take, during which the agent answers no ping.
constexpr double kAgentBusySeconds = 75;
constexpr uint64_t kMeeting = 1;  // the number of the first question

}  // namespace

LocalUnitHost::LocalUnitHost(MeetQuestion meet, std::function<Binaries()> find_binaries)
    : meet_(std::move(meet)), units_(std::move(find_binaries)) {}

const HostFacts& LocalUnitHost::facts() const {
  DTF_CHECK(facts_.has_value());
  return *facts_;
}

void LocalUnitHost::ask(const UnitQuestion& question, Duration /*within*/) {
  DTF_CHECK(!isAsked());
  try {
    if (!facts_) facts_ = units_.answer(meet_).facts;
    answer_ = units_.answer(question);
  } catch (const Error&) {
    error_ = std::current_exception();
  }
}

std::optional<UnitAnswer> LocalUnitHost::answered() {
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  return std::exchange(answer_, std::nullopt);
}

FarUnitHost::FarUnitHost(MeetQuestion meet, AgentLinkOptions link, boost::asio::io_context& io,
                         const Clock& clock, std::function<void(const FilePiece&)> on_file)
    : meet_(std::move(meet)),
      options_([&] {
        link.open.lease_seconds = kAgentBusySeconds;
        link.connect_within = kConnectWithin;
        link.on_file = std::move(on_file);
        link.units = UnitsOrder{kMeeting, questionJson(meet_)};
        link.on_units = [this](const UnitsReport& report) { onReport(report); };
        return std::move(link);
      }()),
      io_(io),
      clock_(clock) {}

FarUnitHost::~FarUnitHost() = default;

const HostFacts& FarUnitHost::facts() const {
  DTF_CHECK_MSG(facts_.has_value(), options_.host);
  return *facts_;
}

void FarUnitHost::connect() {
  is_met_ = false;
  number_ = kMeeting;
  link_ = std::make_unique<AgentLink>(io_, clock_, no_tasks_, options_);
  ++connections_;
  link_->connect("");
}

void FarUnitHost::ask(const UnitQuestion& question, Duration within) {
  DTF_CHECK_MSG(!question_, options_.host);
  question_ = questionJson(question);
  is_sent_ = false;
  answer_.reset();
  deadline_ = clock_.now() + within;
  if (link_ && link_->failure()) link_.reset();
  // The newest error is the answer while it is too early to try again.
  if (!link_ && !(error_ && clock_.now() < failed_ + kAgainAfter)) {
    error_.reset();
    connect();
  }
}

void FarUnitHost::onReport(const UnitsReport& report) {
  if (report.number != number_ || answer_)
    throw Error(ErrorCode::kBadData, "it answers a request that was not made");
  answer_ = parseAnswer(report.answer);
}

std::optional<UnitAnswer> FarUnitHost::answered() {
  if (!question_) return std::nullopt;
  if (!link_) fail(*error_);
  link_->look();
  if (link_->failure()) fail(*link_->failure());
  if (clock_.now() > deadline_)
    fail(Error(ErrorCode::kDeadline,
               fmt::format("{}: its dtf-agent has not answered in time", options_.host)));
  if (!link_->listens()) return std::nullopt;
  if (answer_ && !is_met_) {
    UnitAnswer met = *std::exchange(answer_, std::nullopt);
    if (met.error) fail(ofHost(options_.host, *met.error));
    if (!met.facts)
      fail(ofHost(options_.host,
                  Error(ErrorCode::kBadData, "its answer lacks the folder of its units")));
    facts_ = std::move(met.facts);
    is_met_ = true;
  }
  if (is_met_ && !std::exchange(is_sent_, is_met_)) link_->ask(UnitsOrder{++number_, *question_});
  if (!is_met_ || !answer_) return std::nullopt;
  question_.reset();
  UnitAnswer answer = *std::exchange(answer_, std::nullopt);
  if (answer.error) throw ofHost(options_.host, *answer.error);
  return answer;
}

void FarUnitHost::keepUp() {
  if (link_) link_->look();
}

void FarUnitHost::abandon() {
  question_.reset();
  answer_.reset();
  link_.reset();
}

// The connection is of no use any more.
void FarUnitHost::fail(Error error) {
  question_.reset();
  answer_.reset();
  if (std::exchange(link_, nullptr) != nullptr) failed_ = clock_.now();
  error_ = error;
  throw error;
}

}  // namespace dtf::launcher
