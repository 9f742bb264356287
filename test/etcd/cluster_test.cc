// Several members, TLS and login: a directory in a real etcd that is not a single open server.

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "base/fd.h"
#include "base/test_folder.h"
#include "directory/etcd/http.h"
#include "etcd_server.h"
#include "identity/test_authority.h"

namespace hawser::etcd_test {
namespace {

using directory::etcd::HttpClient;

TEST(EtcdCluster, AMemberThatDiesIsPassedOver) {
  auto members = EtcdServer::cluster(3);
  std::vector<std::string> endpoints;
  for (auto& member : members) {
    member->start();
    endpoints.push_back(member->endpoint());
  }
  ASSERT_TRUE(members[0]->await_ready());
  const EtcdOptions options{.endpoints = endpoints, .prefix = "t/", .lease = 60s, .timeout = 6s};
  const auto directory = etcd(options).value();
  const auto set = [&](std::string_view key, std::string_view value, PutOptions how = {}) {
    return eventually([&] { return put(*directory, key, value, how).ok(); });
  };
  ASSERT_TRUE(set("card", "mine", {.tied = true}));
  Picture picture(*directory, "");
  ASSERT_TRUE(picture.await("card=mine"));
  // The first member, which serves our stream, goes; two of three go on, after an election perhaps.
  members[0]->kill();
  ASSERT_TRUE(set("a", "1"));
  EXPECT_TRUE(picture.await("a=1 card=mine"));
  EXPECT_TRUE(eventually([&] { return get(*directory, "card") == "mine"; }));
  // It comes back, and another is stopped without a word.
  members[0]->start();
  ASSERT_TRUE(members[0]->await_ready());
  members[1]->stop();
  ASSERT_TRUE(set("a", "2"));
  EXPECT_TRUE(picture.await("a=2 card=mine"));
  members[1]->resume();
}

void run(const std::string& command) { ASSERT_EQ(std::system((command + " >/dev/null 2>&1").c_str()), 0) << command; }

/// An authority, and a server's and a user's certificate by it; another authority that signed neither.
void make_certificates(const base::TestFolder& folder) {
  const std::string key = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 ";
  for (const std::string name : {"ca", "stranger"}) {
    run(key + "-subj /CN=" + name + " -keyout " + folder.path(name + ".key") + " -out " + folder.path(name + ".pem"));
  }
  for (const std::string name : {"server", "user"}) {
    run("openssl req -newkey rsa:2048 -nodes -subj /CN=" + name + " -keyout " + folder.path(name + ".key") + " -out " +
        folder.path(name + ".csr"));
    std::ofstream(folder.path(name + ".ext")) << "subjectAltName=IP:127.0.0.1,DNS:localhost\n";
    run("openssl x509 -req -days 2 -in " + folder.path(name + ".csr") + " -CA " + folder.path("ca.pem") + " -CAkey " +
        folder.path("ca.key") + " -CAcreateserial -extfile " + folder.path(name + ".ext") + " -out " +
        folder.path(name + ".pem"));
  }
}

TEST(EtcdAccess, TlsBothWays) {
  if (std::system("openssl version >/dev/null 2>&1") != 0) GTEST_SKIP() << "openssl is not installed";
  const base::TestFolder folder("hawser-tls");
  ASSERT_NO_FATAL_FAILURE(make_certificates(folder));
  EtcdServer server(
      {.arguments = {"--cert-file=" + folder.path("server.pem"), "--key-file=" + folder.path("server.key"),
                     "--trusted-ca-file=" + folder.path("ca.pem"), "--client-cert-auth"},
       .scheme = "https"});
  server.start();
  EtcdOptions options{.ca = folder.path("ca.pem"), .cert = folder.path("user.pem"), .key = folder.path("user.key")};
  ASSERT_TRUE(server.await_ready(options));
  options.endpoints = {server.endpoint()};  // Without a scheme: TLS, as there is a ca.
  options.timeout = kPatience;
  const auto good = etcd(options).value();
  const Status stored = put(*good, "k", "secret");
  ASSERT_TRUE(stored.ok()) << stored.to_string() << server.log_tail();
  Picture picture(*good, "k");
  EXPECT_TRUE(picture.await("k=secret"));

  EtcdOptions other = options;
  other.ca = folder.path("stranger.pem");
  const auto distrustful = etcd(other).value();
  const Status denied = await(*distrustful, distrustful->get("k")).status;
  EXPECT_EQ(denied.code(), Code::kDenied) << denied.to_string();
  other = options;
  other.cert.clear();
  other.key.clear();
  other.timeout = 500ms;
  const auto nobody = etcd(other).value();
  EXPECT_FALSE(await(*nobody, nobody->get("k")).status.ok());
  other = options;
  other.endpoints = {"http://" + server.endpoint()};
  other.timeout = 500ms;
  const auto plain = etcd(other).value();
  EXPECT_FALSE(await(*plain, plain->get("k")).status.ok());
}

/// An etcd that lets in who has a certificate of the authority, at a name that its own certificate is for.
std::unique_ptr<EtcdServer> guarded_by(identity::TestAuthority& authority) {
  const std::string folder = authority.issue_to("etcd", {"localhost"});
  auto server = std::make_unique<EtcdServer>(
      EtcdServerOptions{.arguments = {"--cert-file=" + folder + "/tls.crt", "--key-file=" + folder + "/tls.key",
                                      "--trusted-ca-file=" + folder + "/ca.crt", "--client-cert-auth"},
                        .scheme = "https",
                        .host = "localhost"});
  server->start();
  return server;
}

EtcdOptions with_identity(const EtcdServer& server, const std::string& folder) {
  EtcdOptions options{.endpoints = {server.url()}, .identity = folder, .timeout = kPatience};
  return options;
}

TEST(EtcdAccess, AnAgentsIdentityIsShownAndItsAuthorityTrusted) {
  identity::TestAuthority authority, stranger;
  const auto server = guarded_by(authority);
  const std::string folder = authority.issue_to("worker");
  ASSERT_TRUE(server->await_ready(with_identity(*server, folder)));
  const auto good = etcd(with_identity(*server, folder)).value();
  const Status stored = put(*good, "k", "secret");
  ASSERT_TRUE(stored.ok()) << stored.to_string() << server->log_tail();

  EtcdOptions other = with_identity(*server, stranger.issue_to("worker"));
  other.timeout = 500ms;
  const auto distrustful = etcd(other).value();
  EXPECT_EQ(await(*distrustful, distrustful->get("k")).status.code(), Code::kDenied) << "etcd is of another authority";
  other.ca = folder + "/ca.crt";
  const auto distrusted = etcd(other).value();
  EXPECT_FALSE(await(*distrusted, distrusted->get("k")).status.ok()) << "etcd knows another authority";
  other.identity.clear();
  const auto nobody = etcd(other).value();
  EXPECT_FALSE(await(*nobody, nobody->get("k")).status.ok()) << "it shows nothing";
  other.cert = folder + "/tls.crt";
  other.key = folder + "/tls.key";
  other.timeout = kPatience;
  const auto told = etcd(other).value();
  EXPECT_EQ(get(*told, "k"), "secret") << "files of its own go before";
}

// A certificate that etcd does not take any more is replaced in the folder: the directory goes on with the new one.
TEST(EtcdAccess, ARenewedIdentityIsShownFromTheNextConnectionOn) {
  identity::TestAuthority authority;
  const auto server = guarded_by(authority);
  const std::string folder = authority.issue_to("worker");
  ASSERT_TRUE(server->await_ready(with_identity(*server, folder)));
  ASSERT_TRUE(authority.issue("worker", {}, -3600, 3).write(folder).ok());
  const auto directory = etcd(with_identity(*server, folder)).value();
  ASSERT_TRUE(put(*directory, "k", "before").ok());
  nap(3500ms);
  EtcdOptions late = with_identity(*server, folder);
  late.timeout = 500ms;
  const auto expired = etcd(late).value();
  EXPECT_FALSE(await(*expired, expired->get("k")).status.ok()) << "it has expired";
  ASSERT_TRUE(authority.issue("worker").write(folder).ok());
  server->kill();  // No connection of before is left.
  server->start();
  ASSERT_TRUE(server->await_ready(with_identity(*server, folder)));
  EXPECT_TRUE(put(*directory, "k", "after").ok());
  EXPECT_EQ(get(*directory, "k"), "after");
}

TEST(EtcdAccess, AnEtcdWhoseCertificateWasRevokedIsNotTalkedTo) {
  identity::TestAuthority authority;
  const auto server = guarded_by(authority);
  const std::string folder = authority.issue_to("worker");
  ASSERT_TRUE(server->await_ready(with_identity(*server, folder)));
  ASSERT_TRUE(authority.get().copy_revoked(folder).ok());
  const auto directory = etcd(with_identity(*server, folder)).value();
  ASSERT_TRUE(put(*directory, "k", "v").ok()) << "an empty list revokes nobody";
  ASSERT_TRUE(authority.get().revoke("etcd", identity::unix_seconds()).has_value());
  ASSERT_TRUE(authority.get().copy_revoked(folder).ok());
  EtcdOptions soon = with_identity(*server, folder);
  soon.timeout = 500ms;
  const auto distrustful = etcd(soon).value();
  EXPECT_EQ(await(*distrustful, distrustful->get("k")).status.code(), Code::kDenied);
}

TEST(EtcdAccess, AFolderWithoutAnIdentityIsAnErrorWhereItCounts) {
  const base::TestFolder empty("hawser-identity");
  EtcdOptions options{.endpoints = {"https://localhost:1"}, .identity = empty.path()};
  const auto refused = etcd(options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kInvalid);
  EXPECT_NE(refused.error().message().find("no certificate is there"), std::string_view::npos)
      << refused.error().to_string();
  options.endpoints = {"http://localhost:1"};
  EXPECT_TRUE(etcd(options)) << "in clear nobody shows one";
}

TEST(EtcdAccess, ALoginIsRenewed) {
  // Tokens that nobody uses for two seconds are forgotten.
  EtcdServer server({.arguments = {"--auth-token-ttl=2"}});
  server.start();
  ASSERT_TRUE(server.await_ready());
  const auto http = HttpClient::open({}).value();
  const auto ask = [&](const std::string& path, const std::string& body) {
    const auto reply = http->post({server.url() + "/v3/auth" + path, body, ""}, now() + kPatience);
    ASSERT_TRUE(reply && reply->status == 200) << path << (reply ? reply->body : "");
  };
  ask("/user/add", R"({"name":"root","password":"pass \"word\""})");
  ask("/role/add", R"({"name":"root"})");
  ask("/user/grant", R"({"user":"root","role":"root"})");
  ask("/user/add", R"({"name":"nobody","password":"p"})");
  ask("/enable", "{}");

  const EtcdOptions options{
      .endpoints = {server.endpoint()}, .user = "root", .password = "pass \"word\"", .timeout = kPatience};
  const auto directory = etcd(options).value();
  ASSERT_TRUE(put(*directory, "k", "1").ok());
  Picture picture(*directory, "k");
  ASSERT_TRUE(picture.await("k=1"));
  nap(3500ms);
  EXPECT_EQ(get(*directory, "k"), "1");
  ASSERT_TRUE(put(*directory, "k", "2").ok());
  EXPECT_TRUE(picture.await("k=2"));

  const auto code = [&](const std::string& user, const std::string& password) {
    EtcdOptions other = options;
    other.user = user;
    other.password = password;
    const auto handle = etcd(other).value();
    const Status status = await(*handle, handle->get("k")).status;
    EXPECT_FALSE(status.advice().empty()) << status.to_string();
    return status.code();
  };
  EXPECT_EQ(code("root", "wrong"), Code::kDenied);
  EXPECT_EQ(code("nobody", "p"), Code::kDenied);
  EXPECT_EQ(code("", ""), Code::kDenied);
}

/// A gateway that answers each connection's first request with what it is told, in order; the last for ever.
class FalseGateway {
 public:
  explicit FalseGateway(std::vector<std::string> answers) : answers_(std::move(answers)) {
    listener_ = base::Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_.get(), 8), 0);
    EXPECT_EQ(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~FalseGateway() {
    is_over_.store(true);
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  std::string endpoint() const { return "127.0.0.1:" + std::to_string(port_); }

  static std::string error(const std::string& text, int code) {
    return answer(503,
                  R"({"error":")" + text + R"(","message":")" + text + R"(","code":)" + std::to_string(code) + "}");
  }
  static std::string answer(int status, const std::string& body) {
    return "HTTP/1.1 " + std::to_string(status) +
           " X\r\nConnection: close\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }

 private:
  void serve() {
    for (std::size_t i = 0; !is_over_.load(); ++i) {
      const base::Fd peer(::accept(listener_.get(), nullptr, nullptr));
      if (!peer) continue;
      std::string request(65536, '\0');
      (void)!::recv(peer.get(), request.data(), request.size(), 0);
      const std::string& text = answers_[std::min(i, answers_.size() - 1)];
      (void)!::send(peer.get(), text.data(), text.size(), MSG_NOSIGNAL);
      ::shutdown(peer.get(), SHUT_WR);
      while (::recv(peer.get(), request.data(), request.size(), 0) > 0) continue;
    }
  }

  const std::vector<std::string> answers_;
  base::Fd listener_;
  std::uint16_t port_ = 0;
  std::atomic<bool> is_over_{false};
  std::thread thread_;
};

TEST(EtcdAccess, WhatWillPassIsAskedAgain) {
  const std::string good = R"({"header":{"cluster_id":"1","revision":"9","raft_term":"2"},)"
                           R"("kvs":[{"key":"aw==","value":"dg==","mod_revision":"3"}]})";
  FalseGateway gateway({FalseGateway::error("etcdserver: leader changed", 14),
                        FalseGateway::error("etcdserver: no leader", 14),
                        FalseGateway::error("etcdserver: too many requests", 8), FalseGateway::answer(502, "<html>"),
                        "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\ncut off", FalseGateway::answer(200, good)});
  const auto directory = etcd({.endpoints = {gateway.endpoint()}, .timeout = kPatience}).value();
  EXPECT_EQ(get(*directory, "k"), "v");
}

TEST(EtcdAccess, WhatIsNoEtcdIsAnError) {
  FalseGateway gateway({FalseGateway::answer(200, "<html>hello</html>"), FalseGateway::answer(404, "not here"),
                        FalseGateway::answer(200, R"({"header":{"revision":"x"}})")});
  const auto directory = etcd({.endpoints = {gateway.endpoint()}, .timeout = kPatience}).value();
  EXPECT_EQ(await(*directory, directory->get("k")).status.code(), Code::kCorrupt);
  EXPECT_EQ(await(*directory, directory->get("k")).status.code(), Code::kFailed);
  EXPECT_EQ(await(*directory, directory->get("k")).status.code(), Code::kCorrupt);
}

}  // namespace
}  // namespace hawser::etcd_test
