#include "common/net/http_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <list>
#include <utility>

#include "common/base/check.h"
#include "common/base/log.h"
#include "common/net/bind.h"
#include "common/net/error_bridge.h"
#include "common/net/event_port.h"
#include "common/net/http_stream.h"
#include "common/net/log_limiter.h"
#include "common/net/socket_options.h"
#include "common/net/timer.h"

namespace dtf::net {

using asio::ip::tcp;

namespace {

constexpr Duration kRetryDelay = std::chrono::milliseconds(100);  // after EMFILE and the like
// Bytes after a request that are read and dropped: closing a socket with unread bytes would discard
// the reply before the client has read it.
constexpr size_t kIgnoredBytesMax = 64 << 10;
constexpr Duration kLastWordsMax = std::chrono::seconds(1);

// Like the hosts from parseHttpRequest() and originHost().
HttpOptions inSmallLetters(HttpOptions options) {
  const auto lower = [](std::string& host) {
    for (char& c : host) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  };
  lower(options.only_host);
  for (std::string& host : options.readers) lower(host);
  return options;
}

bool isNumericOrLocal(const std::string& host) {
  error_code ec;
  (void)asio::ip::make_address(host, ec);
  return !ec || host == "localhost" || host.ends_with(".localhost");
}

}  // namespace

//   reading   accept, some bytes      request_deadline -> 408
//   asked     a whole request         the handler, answer_deadline -> 503
//   writing   the reply is known      reading_deadline -> dropped
//   closing   the reply is sent       until the peer closes, kLastWordsMax at most
class HttpServer::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(AsioEventPort& port, tcp::acceptor acceptor, Handler handler, HttpOptions options)
      : port_(port),
        timer_(port),
        options_(inSmallLetters(std::move(options))),
        acceptor_(std::move(acceptor)),
        retry_(port.ioc()),
        handler_(std::move(handler)),
        address_(localName(acceptor_.native_handle())) {
    DTF_CHECK(handler_ != nullptr && options_.connections_max > 0);
  }

  void accept();
  void close();
  const std::string& address() const { return address_; }
  size_t connectionCount() const { return connections_.size(); }

 private:
  enum class State : uint8_t { kReading, kAsked, kWriting, kClosing, kDropped };
  enum Problem : size_t { kRefused, kTooMany, kAcceptFailed, kProblems };

  struct Connection {
    Connection(tcp::socket&& accepted, asio::io_context& ioc, std::shared_ptr<TlsKeys> keys)
        : stream(std::make_shared<HttpStream>(std::move(accepted), std::move(keys))),
          peer(peerName(stream->descriptor())),
          deadline(ioc) {}
    const std::shared_ptr<HttpStream> stream;
    const std::string peer;
    asio::steady_timer deadline;
    State state = State::kReading;
    std::array<char, kHttpHeadBytesMax> request{};
    size_t received = 0;
    size_t ignored = 0;
    std::string response;
    kj::Promise<void> answering =
        nullptr;  // none once it is dropped: kj's loop may end before Asio's
    std::list<std::shared_ptr<Connection>>::iterator place;
  };
  using ConnectionPtr = std::shared_ptr<Connection>;

  void onAccept(const error_code& ec, tcp::socket socket);
  bool makeRoom(const std::string& why, const std::string& newcomer);
  void within(const ConnectionPtr& connection, Duration time, std::function<void()> late);
  void read(const ConnectionPtr& connection);
  void giveUp(const ConnectionPtr& connection);
  void onBytes(const ConnectionPtr& connection);
  void ask(const ConnectionPtr& connection, const HttpRequest& request);
  void refuse(const ConnectionPtr& connection, const HttpRefusal& refusal);
  bool isReader(const std::string& origin) const;
  void respond(const ConnectionPtr& connection, const HttpResponse& response,
               bool with_body = true);
  void finish(const ConnectionPtr& connection);
  void ignoreRest(const ConnectionPtr& connection);
  void drop(const ConnectionPtr& connection);
  void logRefused(Problem problem, const std::string& peer, const std::string& reason);

  AsioEventPort& port_;
  AsioTimer timer_;
  const HttpOptions options_;
  tcp::acceptor acceptor_;
  asio::steady_timer retry_;
  const Handler handler_;
  const std::string address_;
  bool closed_ = false;
  std::list<ConnectionPtr> connections_;  // the oldest first
  LogLimiter<kProblems> limiter_;
};

void HttpServer::Impl::accept() {
  acceptor_.async_accept([self = shared_from_this()](const error_code& ec, tcp::socket socket) {
    if (!self->closed_) self->onAccept(ec, std::move(socket));
  });
}

void HttpServer::Impl::onAccept(const error_code& ec, tcp::socket socket) {
  if (ec == asio::error::connection_aborted || ec == asio::error::interrupted) return accept();
  if (ec) {  // out of descriptors or memory: accepting again at once would spin
    logRefused(kAcceptFailed, address_, ec.message());
    retry_.expires_after(kRetryDelay);
    retry_.async_wait([self = shared_from_this()](const error_code&) {
      if (!self->closed_) self->accept();
    });
    makeRoom(ec.message(), address_);  // on success the wait ends now
    return;
  }
  if (connections_.size() < options_.connections_max ||
      makeRoom(fmt::format("{} connections at once", connections_.size()),
               peerName(socket.native_handle()))) {
    auto connection = std::make_shared<Connection>(std::move(socket), port_.ioc(), options_.keys);
    connection->place = connections_.insert(connections_.end(), connection);
    within(connection, options_.request_deadline, [this, connection] {
      refuse(connection, {408, "no whole request in time"});
    });
    read(connection);
  }
  accept();
}

// Idle connections must not keep out clients with requests.
bool HttpServer::Impl::makeRoom(const std::string& why, const std::string& newcomer) {
  const auto oldestIn = [this](State state) {
    return std::find_if(connections_.begin(), connections_.end(),
                        [state](const auto& other) { return other->state == state; });
  };
  // It has its reply, and the server only waits for the peer to close.
  if (const auto answered = oldestIn(State::kClosing); answered != connections_.end()) {
    drop(ConnectionPtr(*answered));
    return true;
  }
  const auto idle = oldestIn(State::kReading);
  const bool is_found = idle != connections_.end();
  logRefused(kTooMany, is_found ? (*idle)->peer : newcomer, why);
  if (is_found) drop(ConnectionPtr(*idle));
  return is_found;
}

// Calls `late` after `time`, unless the state has changed or another deadline was set.
void HttpServer::Impl::within(const ConnectionPtr& connection, Duration time,
                              std::function<void()> late) {
  connection->deadline.expires_after(time);
  connection->deadline.async_wait([self = shared_from_this(), connection,
                                   before = connection->state,
                                   late = std::move(late)](const error_code& ec) {
    if (!ec && !self->closed_ && connection->state == before) late();
  });
}

void HttpServer::Impl::read(const ConnectionPtr& connection) {
  DTF_CHECK(connection->received < kHttpHeadBytesMax);
  connection->stream->read(
      asio::buffer(connection->request) + connection->received,
      [self = shared_from_this(), connection](const error_code& ec, size_t bytes) {
        if (self->closed_ || connection->state != State::kReading) return;
        if (ec) return self->giveUp(connection);
        connection->received += bytes;
        self->onBytes(connection);
      });
}

// Ends a connection without a complete request.
void HttpServer::Impl::giveUp(const ConnectionPtr& connection) {
  if (const std::string why = connection->stream->failure(); !why.empty())
    logRefused(kRefused, connection->peer, why);
  drop(connection);
}

void HttpServer::Impl::onBytes(const ConnectionPtr& connection) {
  const HttpParsed parsed = parseHttpRequest({connection->request.data(), connection->received});
  if (const auto* request = std::get_if<HttpRequest>(&parsed)) return ask(connection, *request);
  if (const auto* refusal = std::get_if<HttpRefusal>(&parsed)) return refuse(connection, *refusal);
  read(connection);
}

void HttpServer::Impl::ask(const ConnectionPtr& connection, const HttpRequest& request) {
  if (connection->stream->isPlainByMistake())
    return refuse(connection, {400, "this task has keys: ask by https://, not by http://"});
  const bool is_known = options_.keys == nullptr || !connection->stream->certificate().empty();
  const bool is_open =
      std::ranges::find(options_.open_paths, request.path) != options_.open_paths.end();
  if (!is_known && !is_open)
    return refuse(connection, {403,
                               "this page needs a certificate of the job, such as client.pem of "
                               "dtf-launch keys"});
  if (!options_.only_host.empty() && request.host != options_.only_host && !request.host.empty() &&
      !isNumericOrLocal(request.host))
    return refuse(connection, {421, "this server doesn't serve the requested host name"});
  connection->state = State::kAsked;
  connection->deadline.cancel();
  const AsioEventPort::Io io(port_);
  auto late = timer_.afterDelay(toKj(options_.answer_deadline)).then([this]() -> HttpResponse {
    return {503, fmt::format("no answer within {:g} s\n", toSeconds(options_.answer_deadline))};
  });
  connection->answering = kj::evalNow([&] { return handler_(request.path); })
                              .exclusiveJoin(kj::mv(late))
                              .catch_([](kj::Exception&& exception) -> HttpResponse {
                                return {500, toError(exception).message() + "\n"};
                              })
                              .then([this, weak = std::weak_ptr<Connection>(connection),
                                     origin = request.origin, is_known](HttpResponse response) {
                                if (!is_known)
                                  response.body = response.status == 200 ? "yes\n" : "no\n";
                                if (isReader(origin)) response.readable_from = origin;
                                if (const ConnectionPtr still = weak.lock())
                                  respond(still, response);
                              })
                              .eagerlyEvaluate(nullptr);
}

bool HttpServer::Impl::isReader(const std::string& origin) const {
  // A page without TLS may be anybody's, and the browser would present its certificate for it.
  if (options_.keys != nullptr && !origin.starts_with("https://")) return false;
  const std::string host = originHost(origin);
  return !host.empty() && std::find(options_.readers.begin(), options_.readers.end(), host) !=
                              options_.readers.end();
}

void HttpServer::Impl::refuse(const ConnectionPtr& connection, const HttpRefusal& refusal) {
  logRefused(kRefused, connection->peer, fmt::format("{} {}", refusal.status, refusal.reason));
  respond(connection, {refusal.status, refusal.reason + "\n"}, !refusal.is_head);
}

void HttpServer::Impl::respond(const ConnectionPtr& connection, const HttpResponse& response,
                               bool with_body) {
  if (connection->state == State::kDropped) return;
  connection->state = State::kWriting;
  connection->response = httpText(response, with_body);
  within(connection, options_.reading_deadline, [this, connection] { drop(connection); });
  connection->stream->write(asio::buffer(connection->response),
                            [self = shared_from_this(), connection](const error_code& ec, size_t) {
                              if (self->closed_ || connection->state != State::kWriting) return;
                              ec ? self->drop(connection) : self->finish(connection);
                            });
}

void HttpServer::Impl::finish(const ConnectionPtr& connection) {
  connection->state = State::kClosing;
  connection->stream->endWriting();
  within(connection, kLastWordsMax, [this, connection] { drop(connection); });
  ignoreRest(connection);
}

void HttpServer::Impl::ignoreRest(const ConnectionPtr& connection) {
  connection->stream->read(
      asio::buffer(connection->request),
      [self = shared_from_this(), connection](const error_code& ec, size_t bytes) {
        if (self->closed_ || connection->state != State::kClosing) return;
        connection->ignored += bytes;
        if (ec || connection->ignored > kIgnoredBytesMax) return self->drop(connection);
        self->ignoreRest(connection);
      });
}

// Never called from within its own promise.
void HttpServer::Impl::drop(const ConnectionPtr& connection) {
  DTF_CHECK(connection->state != State::kDropped);
  connection->state = State::kDropped;
  connection->deadline.cancel();
  connection->answering = nullptr;
  connection->stream->close();
  connections_.erase(connection->place);
  retry_.cancel();  // a connection that waits for a descriptor has one now
}

void HttpServer::Impl::close() {
  closed_ = true;
  error_code ignored;
  acceptor_.close(ignored);
  retry_.cancel();
  while (!connections_.empty()) drop(ConnectionPtr(connections_.front()));
}

void HttpServer::Impl::logRefused(Problem problem, const std::string& peer,
                                  const std::string& reason) {
  if (const auto suppressed = limiter_.allow(problem, SystemClock().now()))
    log::warning("event=http_refused peer={} reason=\"{}\" suppressed={}", peer, reason,
                 *suppressed);
}

HttpServer::HttpServer(AsioEventPort& port, const std::string& host, uint16_t tcp_port,
                       Handler handler, HttpOptions options)
    : impl_(std::make_shared<Impl>(port, bindAndListen(port, host, tcp_port), std::move(handler),
                                   std::move(options))) {
  impl_->accept();
}

HttpServer::~HttpServer() {
  impl_->close();
}

const std::string& HttpServer::address() const {
  return impl_->address();
}

size_t HttpServer::connectionCount() const {
  return impl_->connectionCount();
}

}  // namespace dtf::net
