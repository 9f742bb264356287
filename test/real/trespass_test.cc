// Attacks by another user of this host, over real sockets. A child that gave up its uid speaks the wire by hand, and
// with the backend itself. It must learn no card, no key and no count of regions, and reach no memory; with the card it
// may.

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backend/places/locator.h"
#include "backend/tcp/factory.h"
#include "base/bytes.h"
#include "base/far_end.h"
#include "base/fd.h"
#include "base/id128.h"
#include "wire/hello.h"

namespace hawser::backend {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using wire::Admission;

constexpr uid_t kOther = 1234;
constexpr std::string_view kTreasure = "the treasure of the owner";

Instant now() { return Clock::steady().now(); }

/// An agent's worth of things around the backend.
struct End {
  explicit End(const std::string& name, Security security = Security::kDefault) : memory(1 << 16), regions(16) {
    identity.name = name;
    identity.incarnation = base::random_id128();
    identity.driven = true;
    if (security != Security::kNone) identity.admission = base::random_id128();
    std::copy(kTreasure.begin(), kTreasure.end(), reinterpret_cast<char*>(memory.data()));
    context = std::make_unique<Context>(Context{.identity = identity,
                                                .regions = regions,
                                                .log = log,
                                                .rng = base::Rng(identity.incarnation.lo),
                                                .security = security,
                                                .heartbeat = milliseconds(250),
                                                .clock = Clock::steady()});
    backend = tcp_factory().open(*context, {{"listen", "127.0.0.1"}}).value();
    port = backend->open_port().value();
    RegionEntry entry;
    entry.key = key;
    entry.base = memory.data();
    entry.size = memory.size();
    entry.rights = Rights::kReadWrite;
    region = regions.add(std::move(entry)).value();
  }
  void turn() {
    port->turn(now(), TurnBudget{});
    std::array<PortEvent, 16> events;
    for (std::size_t count = port->poll(events); count > 0; count = port->poll(events)) {
      for (const PortEvent& event : std::span(events).first(count)) note(event);
    }
  }
  void note(const PortEvent& event) {
    if (event.kind == PortEvent::Kind::kChunkDone) done.push_back(event.status);
    if (event.kind == PortEvent::Kind::kMessage) ++messages;
    if (event.kind == PortEvent::Kind::kPathUp) ++ups;
    if (event.kind == PortEvent::Kind::kPathDown) down.push_back(event.status);
  }
  Path* open(const std::string& address, base::Id128 secret, base::Id128 incarnation = {}) {
    return port
        ->open_path({.peer = "owner",
                     .incarnation = incarnation,
                     .address = address,
                     .supersedes = {},
                     .deadline = now() + seconds(5),
                     .admission = secret},
                    now())
        .value();
  }
  bool run(const std::function<bool()>& finished, Duration patience = seconds(10)) {
    for (const Instant limit = now() + patience; !finished();) {
      if (now() >= limit) return false;
      turn();
    }
    return true;
  }

  Identity identity;
  base::Id128 key = base::random_id128();
  std::vector<std::byte> memory;
  RegionTable regions;
  base::Logger log;
  std::unique_ptr<Context> context;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Port> port;
  std::shared_ptr<const RegionEntry> region;
  std::vector<Status> done, down;
  int ups = 0, messages = 0;
};

std::string text_of(const base::Id128& id) {
  std::string bytes;
  base::ByteWriter(&bytes).id(id);
  return bytes;
}

base::Fd connect_to(const std::string& address) {
  const auto place = parse_locator(address).value().places[0];
  base::Fd fd(::socket(place.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::connect(fd.get(), place.get(), place.size) != 0) fd.reset();
  return fd;
}

std::string hello_of(Admission how) {
  wire::Hello hello;
  hello.name = "trespasser";
  hello.incarnation = {8, 8};
  hello.session = base::random_id128();
  hello.token = {7, 7};
  hello.nonce = base::random_id128();
  hello.admission = how;
  std::string bytes = wire::encode(hello);
  bytes.resize((bytes.size() + 15) / 16 * 16);
  base::store_little_endian(bytes.data() + 4, static_cast<std::uint16_t>(bytes.size() - wire::kHelloPrefix));
  return bytes;
}

/// All that comes until the other end closes, or for two seconds.
std::string read_all(const base::Fd& fd) {
  std::string all;
  std::array<char, 4096> piece;
  for (const Instant limit = now() + seconds(2); now() < limit;) {
    pollfd one = {.fd = fd.get(), .events = POLLIN, .revents = 0};
    if (::poll(&one, 1, 100) <= 0) continue;
    const ssize_t got = ::recv(fd.get(), piece.data(), piece.size(), 0);
    if (got <= 0) break;
    all.append(piece.data(), static_cast<std::size_t>(got));
  }
  return all;
}

/// Runs `attack` in a process of another user; what it returns is its verdict: empty when all was as it should be.
struct Trespasser {
  explicit Trespasser(const std::function<std::string()>& attack) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    pid = ::fork();
    if (pid == 0) {
      std::string verdict = "it could not become another user";
      if (::setresgid(kOther, kOther, kOther) == 0 && ::setresuid(kOther, kOther, kOther) == 0) verdict = attack();
      static_cast<void>(!::write(ends[1], verdict.data(), verdict.size()));
      ::_exit(0);
    }
    ::close(ends[1]);
    from = base::Fd(ends[0]);
  }
  bool is_over() const {
    pollfd one = {.fd = from.get(), .events = POLLIN, .revents = 0};
    return ::poll(&one, 1, 0) > 0;
  }
  std::string verdict() {
    std::string all;
    std::array<char, 4096> piece;
    for (ssize_t got = 0; (got = ::read(from.get(), piece.data(), piece.size())) > 0;) {
      all.append(piece.data(), static_cast<std::size_t>(got));
    }
    ::waitpid(pid, nullptr, 0);
    return all;
  }
  pid_t pid = 0;
  base::Fd from;
};

bool kernel_tells() {
  End a("a");
  const base::Fd fd = connect_to(a.backend->address());
  return base::far_end_of(fd.get()) != base::FarEnd::kCannotAsk;
}

struct Trespass : ::testing::Test {
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can run a process of another user";
    if (!kernel_tells()) GTEST_SKIP() << "no NETLINK_SOCK_DIAG here: the kernel does not tell who owns a connection";
  }
};

TEST_F(Trespass, SpeakingByHandYieldsARefusalAndNothingElse) {
  End owner("owner");
  const std::string address = owner.backend->address();
  Trespasser child([&]() -> std::string {
    for (const Admission how : {Admission::kNotSaid, Admission::kUser, Admission::kNone, Admission::kCookie}) {
      const base::Fd fd = connect_to(address);
      const std::string hello = hello_of(how);
      if (::send(fd.get(), hello.data(), hello.size(), MSG_NOSIGNAL) < 0) return "it could not send";
      const std::string got = read_all(fd);
      const auto answer = wire::decode_hello(base::as_bytes(got));
      if (!answer)
        return "no hello, or more than one, for " + std::to_string(int(how)) + ": " + answer.error().to_string();
      if (answer->status != Code::kDenied) return "it was let in by " + std::to_string(int(how));
      if (got.find("HWCD") != got.npos || got.find(text_of(owner.key)) != got.npos ||
          got.find(text_of(owner.identity.admission)) != got.npos) {
        return "it was told a secret";
      }
    }
    // By the card's proof: the owner proves itself, the guess is refused, and the verdict says no more.
    const base::Fd fd = connect_to(address);
    std::string said = hello_of(Admission::kCard);
    said.append(32, 'x');
    static_cast<void>(::send(fd.get(), said.data(), said.size(), MSG_NOSIGNAL));
    const std::string got = read_all(fd);
    const auto size = wire::hello_size(base::as_bytes(got));
    if (!size || got.size() <= *size) return "no verdict came";
    if (got[*size] != static_cast<char>(Code::kDenied)) return "a guessed proof was taken";
    return got.find(text_of(owner.key)) == got.npos ? "" : "it was told a key";
  });
  EXPECT_TRUE(owner.run([&] { return child.is_over(); }, seconds(30)));
  EXPECT_EQ(child.verdict(), "");
  EXPECT_EQ(owner.ups + owner.messages, 0) << "the agent was told of it";
}

/// Tries to read and overwrite the owner's region, whose key is known to it for the test's sake.
std::string reach_for(End& self, Path* path, const End& owner) {
  if (!self.run([&] { return self.ups == 1 || !self.down.empty(); })) return "nothing happened";
  if (self.ups == 0) return self.down[0].to_string();
  static_cast<void>(path->send(Priority::kRealtime, base::as_bytes(std::string_view("welcome")), {}));
  RemoteRegionRef ref;
  ref.index = owner.region->index;
  ref.generation = owner.region->generation;
  ref.key = owner.key;
  const auto binding = path->bind(ref);
  if (!binding) return binding.error().to_string();
  std::fill(self.memory.begin(), self.memory.end(), std::byte{0});
  const Piece piece = {self.memory.data(), 0, kTreasure.size()};
  Chunk chunk;
  chunk.op = Operation::kRead;
  chunk.transfer = 1;
  chunk.target = *binding;
  chunk.pieces = {&piece, 1};
  chunk.bytes = piece.size;
  if (path->submit({&chunk, 1}, now()).taken != 1) return "it was not taken";
  if (!self.run([&] { return !self.done.empty(); })) return "it did not end";
  return std::string(reinterpret_cast<const char*>(self.memory.data()), kTreasure.size());
}

TEST_F(Trespass, TheBackendItselfReachesNothingWithoutTheCardAndAllWithIt) {
  End owner("owner");
  const std::string address = owner.backend->address();
  for (const bool has_card : {false, true}) {
    Trespasser child([&] {
      End self("trespasser");
      const base::Id128 secret = has_card ? owner.identity.admission : base::Id128{};
      return reach_for(self, self.open(address, secret, owner.identity.incarnation), owner);
    });
    EXPECT_TRUE(owner.run([&] { return child.is_over(); }, seconds(30)));
    const std::string verdict = child.verdict();
    if (has_card) {
      EXPECT_EQ(verdict, kTreasure) << "the holder of the card may, whatever its user";
    } else {
      EXPECT_NE(verdict.find("another user"), verdict.npos) << verdict;
      EXPECT_EQ(owner.ups, 0);
    }
  }
  EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(owner.memory.data()), kTreasure.size()), kTreasure);
}

// A listener of another user where a peer is expected: it hears a hello, which holds no secret, and nothing more.
TEST_F(Trespass, ASquatterOnThePortIsToldNothing) {
  base::Fd listener(::socket(AF_INET, SOCK_STREAM, 0));
  base::SocketAddress at = base::numeric_address({.host = "127.0.0.1", .port = 0}).value();
  ASSERT_EQ(::bind(listener.get(), at.get(), at.size), 0);
  ASSERT_EQ(::listen(listener.get(), 8), 0);
  ASSERT_EQ(::getsockname(listener.get(), at.get(), &at.size), 0);
  Trespasser child([&]() -> std::string {
    for (const Admission how : {Admission::kUser, Admission::kNone, Admission::kCookie, Admission::kCard}) {
      const base::Fd fd(::accept(listener.get(), nullptr, nullptr));  // The socket is the child's own from here.
      const std::string hello = hello_of(how);
      static_cast<void>(::send(fd.get(), hello.data(), hello.size(), MSG_NOSIGNAL));
      const std::string got = read_all(fd);
      const auto size = wire::hello_size(base::as_bytes(got));
      if (!size || *size != got.size()) return "it heard " + std::to_string(got.size()) + " bytes, not one hello";
    }
    return "";
  });
  for (const bool has_card : {false, false, false, true}) {
    End self("opener");
    const base::Id128 secret = has_card ? base::random_id128() : base::Id128{};
    self.open(base::to_string(at), secret);
    ASSERT_TRUE(self.run([&] { return self.ups > 0 || !self.down.empty(); }));
    EXPECT_EQ(self.ups, 0);
    ASSERT_EQ(self.down.size(), 1u);
    EXPECT_EQ(self.down[0].code(), Code::kDenied) << self.down[0].to_string();
    EXPECT_NE(self.down[0].scope(), Scope::kPeer);
  }
  EXPECT_EQ(child.verdict(), "");
}

TEST_F(Trespass, AThousandHellosWithoutAWelcomeLeaveDescriptorsAndAGoodPeer) {
  End owner("owner", Security::kNone), good("good", Security::kNone);
  const std::string address = owner.backend->address();
  const auto both = [&](const std::function<bool()>& finished) {
    return owner.run([&] {
      good.turn();
      return finished();
    });
  };
  Path* path = good.open(address, {});
  ASSERT_TRUE(both([&] { return good.ups == 1; }));
  const auto greet = [&] { return path->send(Priority::kRealtime, base::as_bytes(std::string_view("hi")), {}); };
  ASSERT_TRUE(greet());
  ASSERT_TRUE(both([&] { return owner.messages == 1; }));
  Trespasser child([&]() -> std::string {
    rlimit most = {};
    ::getrlimit(RLIMIT_NOFILE, &most);
    most.rlim_cur = most.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &most);
    std::vector<base::Fd> held;
    for (int i = 0; i < 1006; ++i) {
      held.push_back(connect_to(address));
      if (!held.back()) return "only " + std::to_string(i) + " connections";
      const std::string hello = hello_of(Admission::kUser);
      static_cast<void>(::send(held.back().get(), hello.data(), hello.size(), MSG_NOSIGNAL));
    }
    int open = 0;
    ::usleep(500'000);
    for (const base::Fd& fd : held) {
      std::array<char, 2048> bytes;
      ssize_t got = 1;
      while (got > 0) got = ::recv(fd.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
      open += got < 0 && errno == EAGAIN ? 1 : 0;
    }
    return open <= 16 ? "" : std::to_string(open) + " connections are held";
  });
  int said = 1;
  ASSERT_TRUE(both([&] {
    if (said < 100 && owner.messages == said && greet()) ++said;
    return child.is_over();
  }));
  EXPECT_EQ(child.verdict(), "");
  EXPECT_EQ(said, 100) << "the good peer was kept waiting";
  EXPECT_EQ(owner.ups, 1);
  EXPECT_TRUE(good.down.empty());
}

}  // namespace
}  // namespace hawser::backend
