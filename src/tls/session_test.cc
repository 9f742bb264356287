#include "tls/session.h"

#include <gtest/gtest.h>
#include <sodium.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "base/dylib.h"
#include "base/rng.h"

namespace hawser::tls {
namespace {

using Bytes = std::vector<std::byte>;

Bytes pattern(std::size_t size, unsigned seed) {
  Bytes bytes(size);
  base::Rng rng(seed);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng.u64());
  return bytes;
}

iovec part_of(Bytes& bytes) { return {bytes.data(), bytes.size()}; }

/// Two ends and what is under way between them.
class SessionTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_GE(sodium_init(), 0);
    opener_ = open(opener_keys_ = KeyPair::make(), End::kOpener);
    acceptor_ = open(acceptor_keys_ = KeyPair::make(), End::kAcceptor);
  }

  static std::unique_ptr<Session> open(const KeyPair& keys, End end) {
    auto credentials = Credentials::make(keys);
    EXPECT_TRUE(credentials.has_value()) << credentials.error().to_string();
    auto session = Session::open(*credentials, end);
    EXPECT_TRUE(session.has_value()) << session.error().to_string();
    return *std::move(session);
  }

  /// Moves at most `most` bytes. False: there was nothing to move, or no room.
  static bool carry(Session& from, Session& to, std::size_t most = SIZE_MAX) {
    const std::span<std::byte> room = to.room();
    const std::size_t size = std::min({from.to_send().size(), room.size(), most});
    if (size == 0) return false;
    std::memcpy(room.data(), from.to_send().data(), size);
    from.sent(size);
    to.came(size);
    return true;
  }

  /// Until neither end has more to say. The first error of each end stays in `said`.
  void shake(std::size_t most = SIZE_MAX) {
    for (int i = 0; i < 10'000; ++i) {
      if (Status status = opener_->handshake(); opener_said_.ok()) opener_said_ = status;
      if (Status status = acceptor_->handshake(); acceptor_said_.ok()) acceptor_said_ = status;
      const bool there = carry(*opener_, *acceptor_, most);
      const bool back = carry(*acceptor_, *opener_, most);
      if (!there && !back) return;
    }
    FAIL() << "the handshake does not end";
  }

  static Result<Bytes> read_all(Session& session) {
    Bytes bytes;
    for (;;) {
      Bytes some(5'000);
      const iovec part = part_of(some);
      const Result<std::size_t> got = session.read({&part, 1});
      if (!got) return got.error();
      if (*got == 0) return bytes;
      bytes.insert(bytes.end(), some.begin(), some.begin() + static_cast<std::ptrdiff_t>(*got));
    }
  }

  /// Sends `bytes` from the opener to the acceptor, cut into `parts` parts.
  Bytes pass(Bytes& bytes, std::size_t parts, std::size_t most = SIZE_MAX) {
    std::vector<iovec> list;
    for (std::size_t i = 0; i < parts; ++i) {
      const std::size_t from = bytes.size() * i / parts, to = bytes.size() * (i + 1) / parts;
      list.push_back({bytes.data() + from, to - from});
    }
    Bytes arrived;
    for (std::size_t sent = 0; sent < bytes.size() || !opener_->to_send().empty();) {
      std::vector<iovec> rest;
      for (std::size_t passed = 0; const iovec& part : list) {
        const std::size_t skip = std::min(part.iov_len, sent - std::min(sent, passed));
        rest.push_back({static_cast<std::byte*>(part.iov_base) + skip, part.iov_len - skip});
        passed += part.iov_len;
      }
      const Result<std::size_t> taken = opener_->write(rest);
      if (!taken) return arrived;
      EXPECT_LE(opener_->to_send().size(), Session::kOut);
      sent += *taken;
      carry(*opener_, *acceptor_, most);
      const Result<Bytes> got = read_all(*acceptor_);
      if (!got) return arrived;
      arrived.insert(arrived.end(), got->begin(), got->end());
    }
    return arrived;
  }

  KeyPair opener_keys_ = KeyPair::from({}), acceptor_keys_ = KeyPair::from({});
  std::unique_ptr<Session> opener_, acceptor_;
  Status opener_said_, acceptor_said_;
};

TEST_F(SessionTest, EachEndLearnsTheOthersKeyAndBothTheSameBinding) {
  shake();
  ASSERT_TRUE(opener_->is_up() && acceptor_->is_up()) << opener_said_.to_string() << acceptor_said_.to_string();
  EXPECT_EQ(opener_->peer_key(), acceptor_keys_.public_key());
  EXPECT_EQ(acceptor_->peer_key(), opener_keys_.public_key());
  EXPECT_EQ(opener_->binding(), acceptor_->binding());
  EXPECT_NE(opener_->binding(), Session::Binding{});
  EXPECT_NE(opener_->describe().find("TLS1.3"), std::string::npos) << opener_->describe();
  EXPECT_NE(opener_->describe().find("AES-128-GCM"), std::string::npos) << opener_->describe();
}

TEST_F(SessionTest, PartsOfAnySizeAreFilledInOrder) {
  shake();
  base::Rng rng(14);
  Bytes bytes = pattern(300'000, 15), got;
  std::size_t sent = 0;
  while (got.size() < bytes.size()) {
    const iovec next = {bytes.data() + sent, std::min<std::size_t>(1 + rng.below(40'000), bytes.size() - sent)};
    sent += next.iov_len == 0 ? 0 : opener_->write({&next, 1}).value();
    carry(*opener_, *acceptor_, 1 + rng.below(50'000));
    std::vector<Bytes> rooms;
    std::vector<iovec> parts;
    for (int i = 0; i < 4; ++i) rooms.emplace_back(rng.below(i % 2 == 0 ? 30 : 40'000));
    for (Bytes& room : rooms) parts.push_back(part_of(room));
    std::size_t count = acceptor_->read(parts).value();
    for (const Bytes& room : rooms) {
      const std::size_t here = std::min(count, room.size());
      got.insert(got.end(), room.begin(), room.begin() + static_cast<std::ptrdiff_t>(here));
      count -= here;
    }
  }
  EXPECT_EQ(got, bytes);
}

// A record without its last bytes, or of a length that no record has, ends the session where it stands.
TEST_F(SessionTest, ARecordOfAWrongLengthBreaksTheSession) {
  for (const int changed : {3, 4}) {
    SetUp();
    shake();
    Bytes bytes = pattern(10'000, 16);
    const iovec part = part_of(bytes);
    ASSERT_EQ(opener_->write({&part, 1}).value(), bytes.size());
    Bytes sealed(opener_->to_send().begin(), opener_->to_send().end());
    sealed[static_cast<std::size_t>(changed)] ^= std::byte{0xff};
    sealed.resize(sealed.size() + 70'000);
    Result<Bytes> got = Bytes();
    for (std::size_t at = 0; got && at < sealed.size();) {
      const std::span<std::byte> room = acceptor_->room();
      const std::size_t size = std::min(room.size(), sealed.size() - at);
      ASSERT_GT(size, 0u);
      std::memcpy(room.data(), sealed.data() + at, size);
      acceptor_->came(size);
      at += size;
      got = read_all(*acceptor_);
      if (got) {
        ASSERT_TRUE(got->empty());
      }
    }
    ASSERT_FALSE(got) << changed;
    EXPECT_EQ(got.error().code(), Code::kCorrupt) << got.error().to_string();
    EXPECT_FALSE(read_all(*acceptor_)) << "it stays broken";
  }
}

TEST_F(SessionTest, EachSessionHasABindingOfItsOwn) {
  shake();
  const Session::Binding first = opener_->binding();
  opener_ = open(opener_keys_, End::kOpener);
  acceptor_ = open(acceptor_keys_, End::kAcceptor);
  shake();
  ASSERT_TRUE(opener_->is_up());
  EXPECT_NE(opener_->binding(), first);
}

TEST_F(SessionTest, AHandshakeComesThroughByteByByte) {
  shake(1);
  EXPECT_TRUE(opener_->is_up() && acceptor_->is_up()) << opener_said_.to_string() << acceptor_said_.to_string();
}

TEST_F(SessionTest, BytesComeThroughWhateverThePartsAndSteps) {
  shake();
  base::Rng rng(7);
  for (const std::size_t size :
       {std::size_t{1}, std::size_t{15}, Session::kRecordMax - 1, Session::kRecordMax, Session::kRecordMax + 1,
        2 * Session::kRecordMax, std::size_t{100'000}, 3 * Session::kOut}) {
    for (const std::size_t parts : {1, 2, 7, 300}) {
      Bytes bytes = pattern(size, static_cast<unsigned>(size + parts));
      EXPECT_EQ(pass(bytes, parts, 1 + rng.below(70'000)), bytes) << size << " bytes in " << parts << " parts";
    }
  }
}

TEST_F(SessionTest, WhatCameTogetherWithTheHandshakeIsThere) {
  // The opener is up first, and its first words may come in one call with the end of its handshake.
  while (!opener_->is_up()) {
    ASSERT_TRUE(opener_->handshake().ok() && acceptor_->handshake().ok());
    if (!opener_->is_up()) carry(*opener_, *acceptor_), carry(*acceptor_, *opener_);
  }
  Bytes words = pattern(3'000, 1);
  const iovec part = part_of(words);
  ASSERT_EQ(opener_->write({&part, 1}).value(), words.size());
  carry(*opener_, *acceptor_);
  ASSERT_TRUE(acceptor_->handshake().ok());
  ASSERT_TRUE(acceptor_->is_up());
  EXPECT_EQ(read_all(*acceptor_).value(), words);
}

TEST_F(SessionTest, WriteTakesNoMoreThanThereIsRoomFor) {
  shake();
  Bytes bytes = pattern(4 * Session::kOut, 3);
  const iovec part = part_of(bytes);
  const std::size_t taken = opener_->write({&part, 1}).value();
  EXPECT_LT(taken, Session::kOut);
  EXPECT_GE(taken, Session::kOut - 2 * (Session::kRecordMax + Session::kRecordFrame));
  EXPECT_LE(opener_->to_send().size(), Session::kOut);
  EXPECT_EQ(opener_->write({&part, 1}).value(), 0u);
}

// The socket is read in calls of this size: small ones cost a turn of the port each.
TEST_F(SessionTest, ThereIsRoomForMoreOnceMoreCameThanThereWasRoomFor) {
  shake();
  Bytes bytes = pattern(4 * Session::kInMax, 9), arrived;
  const iovec part = part_of(bytes);
  std::vector<std::size_t> rooms;
  for (std::size_t sent = 0; sent < bytes.size() || !opener_->to_send().empty();) {
    const iovec rest = {static_cast<std::byte*>(part.iov_base) + sent, part.iov_len - sent};
    sent += opener_->write({&rest, 1}).value();
    rooms.push_back(acceptor_->room().size());
    carry(*opener_, *acceptor_);
    const Bytes got = read_all(*acceptor_).value();
    arrived.insert(arrived.end(), got.begin(), got.end());
  }
  EXPECT_EQ(arrived, bytes);
  EXPECT_EQ(rooms.front(), Session::kInFirst);
  EXPECT_EQ(std::ranges::max(rooms), Session::kInMax);
}

TEST_F(SessionTest, ABufferThatIsNeverFullStaysSmall) {
  shake();
  for (int i = 0; i < 100; ++i) {
    Bytes words = pattern(1'000, 3);
    const iovec part = part_of(words);
    ASSERT_EQ(opener_->write({&part, 1}).value(), words.size());
    carry(*opener_, *acceptor_);
    EXPECT_EQ(read_all(*acceptor_).value(), words);
    EXPECT_EQ(acceptor_->room().size(), Session::kInFirst);
  }
}

TEST_F(SessionTest, AChangedByteIsFoundAndNothingOfItsRecordIsRead) {
  shake();
  Bytes bytes = pattern(1'000, 4);
  const iovec part = part_of(bytes);
  ASSERT_TRUE(opener_->write({&part, 1}));
  const std::span<std::byte> room = acceptor_->room();
  const std::size_t size = opener_->to_send().size();
  std::memcpy(room.data(), opener_->to_send().data(), size);
  room[size / 2] ^= std::byte{1};
  acceptor_->came(size);
  const Result<Bytes> got = read_all(*acceptor_);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code(), Code::kCorrupt);
  EXPECT_EQ(read_all(*acceptor_).error().code(), Code::kCorrupt) << "once broken it stays so";
  EXPECT_FALSE(acceptor_->to_send().empty()) << "the peer is told by an alert";
}

TEST_F(SessionTest, ARecordThatIsSentAgainIsFound) {
  shake();
  Bytes bytes = pattern(100, 5);
  const iovec part = part_of(bytes);
  ASSERT_TRUE(opener_->write({&part, 1}));
  for (int i = 0; i < 2; ++i) {
    const std::span<std::byte> room = acceptor_->room();
    std::memcpy(room.data(), opener_->to_send().data(), opener_->to_send().size());
    acceptor_->came(opener_->to_send().size());
  }
  EXPECT_EQ(read_all(*acceptor_).error().code(), Code::kCorrupt);
}

TEST_F(SessionTest, AnEndWithoutGoodbyeIsNoOrderlyOne) {
  shake();
  acceptor_->ended();
  const Result<Bytes> got = read_all(*acceptor_);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code(), Code::kDisconnected);
  EXPECT_FALSE(acceptor_->is_done());
}

TEST_F(SessionTest, AGoodbyeIsAnOrderlyEnd) {
  shake();
  Bytes bytes = pattern(10, 6);
  const iovec part = part_of(bytes);
  ASSERT_TRUE(opener_->write({&part, 1}));
  opener_->say_done();
  carry(*opener_, *acceptor_);
  EXPECT_EQ(read_all(*acceptor_).value(), bytes);
  EXPECT_TRUE(acceptor_->is_done());
}

TEST_F(SessionTest, GarbageIsNoHandshake) {
  const std::string_view garbage = "GET / HTTP/1.1\r\nHost: there\r\n\r\n";
  std::memcpy(acceptor_->room().data(), garbage.data(), garbage.size());
  acceptor_->came(garbage.size());
  const Status status = acceptor_->handshake();
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(acceptor_->handshake(), status);
}

TEST_F(SessionTest, AHandshakeTakesABoundedNumberOfBytes) {
  Bytes flood(Session::kInFirst + 1, std::byte{0x16});
  flood[1] = std::byte{3}, flood[2] = std::byte{3}, flood[3] = std::byte{0x40}, flood[4] = std::byte{0};  // 16 KiB.
  EXPECT_EQ(acceptor_->room().size(), Session::kInFirst);
  std::memcpy(acceptor_->room().data(), flood.data(), Session::kInFirst);
  acceptor_->came(Session::kInFirst);
  static_cast<void>(acceptor_->handshake());
  EXPECT_LE(acceptor_->room().size(), Session::kInFirst);
}

/// A client of GnuTLS's own that does as a stranger might.
class StrangerTest : public SessionTest {
 protected:
  /// `own`: its certificate; null: it has none.
  void open_client(const char* priority, const char* protocol, const Credentials* own = nullptr) {
    const Gnutls& library = *gnutls().value();
    gnutls_session_t client = nullptr;
    ASSERT_EQ(library.init(&client, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_FORCE_CLIENT_CERT), 0);
    ASSERT_EQ(library.certificate_allocate_credentials(&none_), 0);
    ASSERT_EQ(library.priority_init(&priority_, priority, nullptr), 0);
    ASSERT_EQ(library.priority_set(client, priority_), 0);
    ASSERT_EQ(library.credentials_set(client, GNUTLS_CRD_CERTIFICATE, own == nullptr ? none_ : own->certificate()), 0);
    if (protocol != nullptr) {
      const gnutls_datum_t datum = {.data = reinterpret_cast<unsigned char*>(const_cast<char*>(protocol)),
                                    .size = static_cast<unsigned>(std::strlen(protocol))};
      ASSERT_EQ(library.alpn_set_protocols(client, &datum, 1, 0), 0);
    }
    library.transport_set_ptr(client, this);
    library.transport_set_vec_push_function(client, [](gnutls_transport_ptr_t self, const giovec_t* parts, int count) {
      auto& to = *static_cast<StrangerTest*>(self)->acceptor_;
      ssize_t total = 0;
      for (const giovec_t& part : std::span(parts, static_cast<std::size_t>(count))) {
        if (part.iov_len > to.room().size()) break;
        std::memcpy(to.room().data(), part.iov_base, part.iov_len);
        to.came(part.iov_len);
        total += static_cast<ssize_t>(part.iov_len);
      }
      return total;
    });
    client_ = client;
    library.transport_set_pull_function(client, [](gnutls_transport_ptr_t self, void* to, std::size_t size) -> ssize_t {
      auto& test = *static_cast<StrangerTest*>(self);
      const std::size_t there = std::min(size, test.acceptor_->to_send().size());
      if (there == 0) {
        gnutls().value()->transport_set_errno(test.client_, EAGAIN);
        return -1;
      }
      std::memcpy(to, test.acceptor_->to_send().data(), there);
      test.acceptor_->sent(there);
      return static_cast<ssize_t>(there);
    });
  }
  void TearDown() override {
    const Gnutls& library = *gnutls().value();
    if (client_ != nullptr) library.deinit(client_);
    if (priority_ != nullptr) library.priority_deinit(priority_);
    if (none_ != nullptr) library.certificate_free_credentials(none_);
  }
  void connect() {
    for (int i = 0; i < 10; ++i) {
      static_cast<void>(gnutls().value()->handshake(client_));
      if (acceptor_said_ = acceptor_->handshake(); !acceptor_said_.ok()) break;
    }
  }
  void connect(const char* priority, const char* protocol) {
    open_client(priority, protocol);
    if (client_ != nullptr) connect();
  }

  gnutls_session_t client_ = nullptr;
  gnutls_priority_t priority_ = nullptr;
  gnutls_certificate_credentials_t none_ = nullptr;
};

/// RFC 8449: whoever says so gets small records, and no more than they asked for in one.
TEST_F(StrangerTest, SmallRecordsAreMadeForWhoTakesNoOthers) {
  const base::Dylib library = base::Dylib::open({"libgnutls.so.30"}).value();
  const auto set_max = library.symbol<ssize_t(gnutls_session_t, std::size_t)>("gnutls_record_set_max_recv_size");
  ASSERT_TRUE(set_max) << set_max.error().to_string();
  const auto own = Credentials::make(KeyPair::make()).value();
  open_client("NORMAL:-VERS-ALL:+VERS-TLS1.3", "hawser/2", own.get());
  ASSERT_EQ((*set_max)(client_, 512), 0);
  connect();
  ASSERT_TRUE(acceptor_->is_up()) << acceptor_said_.to_string();
  Bytes bytes = pattern(Session::kRecordMax + 5'000, 8), arrived;
  for (std::size_t sent = 0; sent < bytes.size();) {
    const iovec parts[] = {{bytes.data() + sent, 1}, {bytes.data() + sent + 1, bytes.size() - sent - 1}};
    const Result<std::size_t> taken = acceptor_->write(parts);
    ASSERT_TRUE(taken && *taken > 0);
    sent += *taken;
    Bytes some(1'000);
    for (ssize_t got = 1; got > 0;) {
      got = gnutls().value()->record_recv(client_, some.data(), some.size());
      ASSERT_LE(got, 512);
      if (got > 0) arrived.insert(arrived.end(), some.begin(), some.begin() + got);
    }
  }
  EXPECT_EQ(arrived, bytes);
}

TEST_F(StrangerTest, WithoutACertificateNobodyComesIn) {
  connect("NORMAL:-VERS-ALL:+VERS-TLS1.3", "hawser/2");
  EXPECT_EQ(acceptor_said_.code(), Code::kDenied) << acceptor_said_.to_string();
  EXPECT_FALSE(acceptor_->is_up());
}

TEST_F(StrangerTest, AnOlderVersionIsRefused) {
  connect("NORMAL:-VERS-ALL:+VERS-TLS1.2", "hawser/2");
  EXPECT_EQ(acceptor_said_.code(), Code::kUnsupported) << acceptor_said_.to_string();
}

TEST_F(StrangerTest, AnotherProtocolIsRefused) {
  connect("NORMAL:-VERS-ALL:+VERS-TLS1.3", "h2");
  EXPECT_EQ(acceptor_said_.code(), Code::kUnsupported) << acceptor_said_.to_string();
}

}  // namespace
}  // namespace hawser::tls
