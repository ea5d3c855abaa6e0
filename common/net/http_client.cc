#include "common/net/http_client.h"

#include <fmt/format.h>

#include <iterator>
#include <optional>
#include <utility>

#include "common/net/asio.h"

// After <utility>, as asio.h has it.
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>

#include "common/base/error.h"

namespace dtf::net {

namespace http = boost::beast::http;
using asio::ip::tcp;
using AddressIterator = tcp::resolver::results_type::const_iterator;

namespace {

// One request and its reply, from the name to the last byte, as handlers on a loop of its own.
class Exchange {
 public:
  Exchange(const HttpTarget& target, const std::string& content_type, std::string body)
      : target_(target) {
    request_.method(http::verb::post);
    request_.target(target.path);
    request_.version(11);
    request_.set(http::field::host, name());
    request_.set(http::field::user_agent, "dtf/" DTF_VERSION);
    request_.set(http::field::content_type, content_type);
    request_.set(http::field::connection, "close");
    request_.body() = std::move(body);
    request_.prepare_payload();
    parser_.body_limit(kHttpReplyBytesMax);
  }

  HttpReply run(Duration within) {
    start();
    ioc_.run_for(within);
    if (!error_)
      throw Error(ErrorCode::kDeadline,
                  fmt::format("waited {:g} s for {} {}", toSeconds(within), name(), awaited_));
    if (*error_)
      throw Error(ErrorCode::kUnavailable,
                  fmt::format("{} {}: {}", name(), failed_, error_->message()));
    return {static_cast<int>(parser_.get().result_int()), std::move(parser_.get().body())};
  }

 private:
  std::string name() const {
    const bool is_v6 = target_.host.find(':') != std::string::npos;
    const std::string host = is_v6 ? "[" + target_.host + "]" : target_.host;
    return fmt::format("{}:{}", host, target_.port);
  }

  void start() {
    resolver_.async_resolve(
        target_.host, std::to_string(target_.port),
        [this](const error_code& error, const tcp::resolver::results_type& found) {
          if (error) return finish("can't be resolved", error);
          awaited_ = "to accept a connection";
          connect(found.begin());
        });
  }

  // Connects to the first of its addresses that accepts; there is at least one.
  void connect(AddressIterator to) {
    error_code ignored;
    socket_.close(ignored);
    socket_.async_connect(*to, [this, to](const error_code& error) {
      if (!error) return send();
      if (std::next(to) == AddressIterator()) return finish("accepts no connection", error);
      connect(std::next(to));
    });
  }

  void send() {
    awaited_ = "to accept the request";
    http::async_write(socket_, request_, [this](const error_code& error, size_t /*bytes*/) {
      if (error) return finish("doesn't accept the request", error);
      awaited_ = "to answer";
      // Reads the head alone: beast 1.74 ignores body_limit() if both arrive at once.
      http::async_read_header(socket_, buffer_, parser_,
                              [this](const error_code& problem, size_t /*bytes*/) {
                                if (problem) return finishAnswer(problem);
                                readBody();
                              });
    });
  }

  void readBody() {
    http::async_read(socket_, buffer_, parser_,
                     [this](const error_code& problem, size_t /*n*/) { finishAnswer(problem); });
  }

  void finishAnswer(const error_code& problem) { finish("doesn't answer as HTTP does", problem); }

  void finish(const char* failed, const error_code& error) {
    failed_ = failed;
    error_ = error;
  }

  const HttpTarget& target_;
  asio::io_context ioc_{1};
  tcp::resolver resolver_{ioc_};
  tcp::socket socket_{ioc_};
  http::request<http::string_body> request_;
  boost::beast::flat_buffer buffer_{kHttpReplyBytesMax};
  http::response_parser<http::string_body> parser_;
  const char* awaited_ = "to be resolved";
  const char* failed_ = "";
  std::optional<error_code> error_;  // once it has ended
};

}  // namespace

HttpReply httpPost(const HttpTarget& target, const std::string& content_type, std::string body,
                   Duration within) {
  return Exchange(target, content_type, std::move(body)).run(within);
}

}  // namespace dtf::net
