// Who comes in at a port, and whom an opener takes for its peer: ports against each other, and strangers who speak the
// wire by hand. Each stranger is one who could connect: a local process of another user, or anybody on the network.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "backend/stream/handshake.h"
#include "backend/stream/lobby.h"
#include "backend/stream/memory_network.h"
#include "backend/stream/port.h"
#include "backend/stream/test_admitting.h"
#include "base/bytes.h"

namespace hawser::backend::stream {
namespace {

using namespace std::chrono_literals;
using base::FarEnd;
using wire::Admission;

TEST_F(Admitting, TheHolderOfTheCardComesInWhateverItsUser) {
  network.far_end = FarEnd::kOtherUser;
  open_owner();
  const auto friendly = agent("friend");
  Path* path = open(*friendly, kTestSecret, owner->identity.incarnation);
  run(2ms);
  ASSERT_EQ(path->state(), PathState::kUp);
  EXPECT_TRUE(owner->ups.empty());
  greet(path);
  run(1ms);
  EXPECT_EQ(owner->ups, std::vector<std::string>{"friend"});
  EXPECT_EQ(owner->messages, 1);
  EXPECT_EQ(friendly->ups, std::vector<std::string>{"owner"});
}

TEST_F(Admitting, AWrongSecretIsFoundOutByBothEnds) {
  network.far_end = FarEnd::kOtherUser;
  open_owner();
  const auto enemy = agent("enemy");
  Path* path = open(*enemy, {1, 2});
  run(2ms);
  EXPECT_NE(path->state(), PathState::kUp);
  ASSERT_EQ(enemy->down.size(), 1u) << "the owner's proof does not fit the card";
  EXPECT_TRUE(owner->ups.empty());

  // One that goes on although it cannot check.
  auto shake = say(hello(Admission::kCard));
  ASSERT_TRUE(shake->heard());
  EXPECT_EQ(shake->hello().admission, Admission::kCard);
  std::array<std::byte, 32> guess = {};
  const iovec part = {guess.data(), guess.size()};
  ASSERT_EQ(shake->stream().send({&part, 1}).bytes, guess.size());
  run(200us);
  std::array<std::byte, kVerdictHead> head;
  const iovec in = {head.data(), head.size()};
  ASSERT_EQ(shake->stream().receive({&in, 1}).bytes, head.size());
  EXPECT_EQ(head[0], static_cast<std::byte>(Code::kDenied));
  run(1ms);
  EXPECT_TRUE(owner->ups.empty());
}

/// An attacker that ends TLS at both sides and passes the bytes on has one connection with each, and so two bindings.
TEST_F(Admitting, AProofHoldsForOneConnectionOnly) {
  for (const bool is_passed_on : {false, true}) {
    open_owner();
    const auto friendly = agent("friend");
    owner->identity.public_key = public_key_of('o'), friendly->identity.public_key = public_key_of('f');
    network.seals = {{"owner", {.binding = "one", .peer_key = key_of('f')}},
                     {"friend", {.binding = is_passed_on ? "other" : "one", .peer_key = key_of('o')}}};
    Path* path = open(*friendly, kTestSecret, owner->identity.incarnation);
    run(2ms);
    EXPECT_EQ(path->state() == PathState::kUp, !is_passed_on);
    ASSERT_EQ(friendly->down.size(), is_passed_on ? 1u : 0u);
    if (is_passed_on) {
      EXPECT_NE(friendly->down[0].to_string().find("card"), std::string::npos) << friendly->down[0].to_string();
    }
    if (!is_passed_on) greet(path);
    run(1ms);
    EXPECT_EQ(owner->ups.size(), is_passed_on ? 0u : 1u);
    others.clear();
  }
}

/// Over TLS the key says who speaks, whatever the hello says.
TEST_F(Admitting, AHelloThatNamesAnotherKeyThanTlsProvedIsRefused) {
  for (const bool is_owner : {false, true}) {
    open_owner();
    const auto friendly = agent("friend");
    owner->identity.public_key = public_key_of('o'), friendly->identity.public_key = public_key_of('f');
    network.seals = {{"owner", {.binding = "one", .peer_key = key_of(is_owner ? 'f' : 'x')}},
                     {"friend", {.binding = "one", .peer_key = key_of(is_owner ? 'x' : 'o')}}};
    Path* path = open(*friendly, kTestSecret, owner->identity.incarnation);
    run(2ms);
    EXPECT_NE(path->state(), PathState::kUp);
    ASSERT_EQ(friendly->down.size(), 1u);
    EXPECT_NE(friendly->down[0].to_string().find("names another key"), std::string::npos)
        << friendly->down[0].to_string();
    EXPECT_TRUE(owner->ups.empty());
    others.clear();
  }
}

/// Another holder of the card that somehow learned the numbers of a session.
TEST_F(Admitting, AFurtherStreamNeedsTheKeyOfItsSession) {
  open_owner();
  wire::Hello first = hello(Admission::kUser);
  first.streams = 3;
  first.public_key = public_key_of('a');
  const auto opening = say(first);
  ASSERT_EQ(opening->hello().status, Code::kOk) << opening->hello().reason;
  for (const char key : {'b', 'a'}) {
    wire::Hello further = first;
    further.stream = 1;
    further.public_key = public_key_of(key);
    const auto shake = say(further);
    ASSERT_TRUE(shake->heard());
    EXPECT_EQ(shake->hello().status, key == 'a' ? Code::kOk : Code::kDenied) << shake->hello().reason;
  }
}

TEST_F(Admitting, AnotherUserLearnsNoMoreThanThatItIsDenied) {
  network.far_end = FarEnd::kOtherUser;
  open_owner();
  for (const Admission how : {Admission::kUser, Admission::kNone, Admission::kCookie, Admission::kNotSaid}) {
    auto shake = say(hello(how));
    ASSERT_TRUE(shake->heard());
    EXPECT_EQ(shake->hello().status, Code::kDenied) << static_cast<int>(how);
    EXPECT_EQ(shake->hello().admission, Admission::kNotSaid);
    EXPECT_EQ(shake->hello().proof, wire::Proof());
    EXPECT_TRUE(is_closed(*shake));
  }
  const auto other = agent("other");
  Path* path = open(*other);
  run(2ms);
  EXPECT_NE(path->state(), PathState::kUp);
  ASSERT_EQ(other->down.size(), 1u);
  EXPECT_EQ(other->down[0].code(), Code::kDenied);
  EXPECT_NE(other->down[0].to_string().find("another user"), std::string::npos) << other->down[0].to_string();
  EXPECT_TRUE(owner->ups.empty());
}

// The opener asks the kernel whose the other end is, and that knows it only while the connection stands.
TEST_F(Admitting, ARefusalStaysUntilAnOpenerOfTheSameUserHasLeft) {
  open_owner();
  wire::Hello wrong = hello();
  wrong.expects = {9, 9};
  const auto shake = say(wrong);
  ASSERT_TRUE(shake->heard());
  EXPECT_EQ(shake->hello().status, Code::kDisconnected);
  EXPECT_FALSE(is_closed(*shake));
  run(1100ms, 1ms);
  EXPECT_TRUE(is_closed(*shake)) << "nobody holds a place for ever";
  network.far_end = FarEnd::kOtherUser;
  EXPECT_TRUE(is_closed(*say(wrong))) << "a stranger holds none";
}

TEST_F(Admitting, AReplayedProofFitsNoOtherConnection) {
  network.far_end = FarEnd::kOtherUser;
  open_owner();
  const auto friendly = agent("friend");
  const std::size_t at = network.joined.size();
  network.recorded = true;
  Path* path = open(*friendly, kTestSecret, owner->identity.incarnation);
  run(2ms);
  ASSERT_EQ(path->state(), PathState::kUp);
  ASSERT_GT(network.joined.size(), at);
  const std::vector<std::byte> said = network.joined[at].first->record;
  // The same bytes, hello and proof, on a connection of the thief's own.
  std::unique_ptr<Stream> stream = *hand.connect("owner");
  const iovec part = {const_cast<std::byte*>(said.data()), said.size()};
  ASSERT_EQ(stream->send({&part, 1}).bytes, said.size());
  friendly->port->release_path(path);  // So that its session's number is free.
  const std::size_t before = owner->ups.size();
  run(5ms);
  EXPECT_EQ(owner->ups.size(), before);
  std::array<std::byte, 2048> answer;
  const iovec in = {answer.data(), answer.size()};
  const Moved moved = stream->receive({&in, 1});
  ASSERT_GE(moved.bytes, kVerdictHead);
  const Result<std::size_t> hello_size = wire::hello_size(std::span(answer).first(moved.bytes));
  ASSERT_TRUE(hello_size);
  ASSERT_GT(moved.bytes, *hello_size) << "a verdict follows the hello";
  EXPECT_EQ(answer[*hello_size], static_cast<std::byte>(Code::kDenied));
}

TEST_F(Admitting, AListenerThatCannotProveItselfGetsNothing) {
  // A squatter on the owner's port: another user's process, which would take any opener.
  network.far_end = FarEnd::kOtherUser;
  open_owner(Security::kNone);
  std::vector<decltype(agent(""))> openers;  // They are turned until the test ends.
  for (const base::Id128& secret : {base::Id128{}, kTestSecret}) {
    const auto& opener = openers.emplace_back(agent(secret.is_zero() ? "asker" : "holder"));
    Path* path = open(*opener, secret, secret.is_zero() ? base::Id128{} : owner->identity.incarnation);
    run(2ms);
    EXPECT_NE(path->state(), PathState::kUp);
    EXPECT_TRUE(opener->ups.empty());
    ASSERT_EQ(opener->down.size(), 1u);
    EXPECT_NE(opener->down[0].scope(), Scope::kPeer) << "a stranger's word ends no peer";
  }
  EXPECT_EQ(owner->messages, 0);
}

TEST_F(Admitting, ASwappedHelloIsFoundOut) {
  // The squatter answers with a hello that the owner made for somebody else.
  network.far_end = FarEnd::kOtherUser;
  open_owner();
  auto theirs = say(hello(Admission::kCard));
  ASSERT_TRUE(theirs->heard());
  MemoryNetwork squatter{network, "squatted"};
  const auto friendly = agent("friend");
  const PathTarget target = {.peer = "owner",
                             .incarnation = owner->identity.incarnation,
                             .address = "squatted",
                             .supersedes = {},
                             .deadline = now + 1s,
                             .admission = kTestSecret};
  Path* path = friendly->port->open_path(target, now).value();
  run(200us);
  auto stream = squatter.accept();
  ASSERT_NE(stream, nullptr);
  Handshake shake(std::move(stream), wire::Versions());
  ASSERT_TRUE(shake.turn().ok());
  ASSERT_TRUE(shake.heard());
  wire::Hello swapped = theirs->hello();
  swapped.session = shake.hello().session;
  shake.say(swapped);
  ASSERT_TRUE(shake.turn().ok());
  run(1ms);
  EXPECT_EQ(path->state(), PathState::kDown);
  ASSERT_EQ(friendly->down.size(), 1u);
  EXPECT_NE(friendly->down[0].to_string().find("did not make the card"), std::string::npos)
      << friendly->down[0].to_string();
}

TEST_F(Admitting, WhereTheKernelCannotBeAskedTheCookieProves) {
  network.far_end = FarEnd::kCannotAsk;
  open_owner();
  const auto same = agent("same");
  Path* path = open(*same);
  run(2ms);
  ASSERT_EQ(path->state(), PathState::kUp);
  greet(path);
  run(1ms);
  EXPECT_EQ(owner->ups, std::vector<std::string>{"same"});

  network.cookies["other"] = {4, 4};
  const auto other = agent("other");
  Path* denied = open(*other);
  run(2ms);
  EXPECT_NE(denied->state(), PathState::kUp);
  EXPECT_EQ(owner->ups.size(), 1u);

  // One end may ask, the other may not.
  network.far_ends["half"] = FarEnd::kSameUser;
  const auto half = agent("half");
  Path* also = open(*half);
  run(2ms);
  EXPECT_EQ(also->state(), PathState::kUp) << (half->down.empty() ? "" : half->down[0].to_string());
}

TEST_F(Admitting, NoneMeansEverybodyOnlyWhereBothSaySo) {
  network.far_end = FarEnd::kElsewhere;
  open_owner(Security::kNone);
  const auto open_one = agent("open", Security::kNone);
  Path* path = open(*open_one);
  run(2ms);
  EXPECT_EQ(path->state(), PathState::kUp);
  const auto closed_one = agent("closed");
  Path* none = open(*closed_one);
  run(2ms);
  EXPECT_NE(none->state(), PathState::kUp);
}

TEST_F(Admitting, AnOpenerThatNeverProvesIsClosedAndBlamesNobody) {
  network.far_end = FarEnd::kOtherUser;
  open_owner();
  auto silent = knock();
  auto unproven = say(hello(Admission::kCard));
  ASSERT_TRUE(unproven->heard());
  run(6s, 10ms);
  EXPECT_TRUE(is_closed(*silent));
  EXPECT_TRUE(is_closed(*unproven));
  EXPECT_TRUE(owner->ups.empty() && owner->down.empty());
}

TEST_F(Admitting, AHelloWithoutAFirstMessageEndsItsSocketAndNoPeer) {
  network.far_end = FarEnd::kElsewhere;
  open_owner(Security::kNone);
  auto shake = say(hello());
  ASSERT_TRUE(shake->heard());
  EXPECT_EQ(shake->hello().status, Code::kOk);
  EXPECT_FALSE(is_closed(*shake));
  run(6s, 10ms);
  EXPECT_TRUE(is_closed(*shake));
  EXPECT_TRUE(owner->ups.empty() && owner->down.empty()) << "nobody was told of a peer";
}

TEST_F(Admitting, AThousandHellosWithoutAWelcomeHoldSixteenPlacesWhileAGoodPeerWorks) {
  network.far_end = FarEnd::kElsewhere;
  open_owner(Security::kNone);
  const auto good = agent("good", Security::kNone);
  Path* path = open(*good);
  run(2ms);
  greet(path);
  run(1ms);
  ASSERT_EQ(owner->ups.size(), 1u);
  std::vector<std::unique_ptr<Handshake>> strangers;
  for (int i = 0; i < 1006; ++i) {
    strangers.push_back(knock());
    strangers.back()->say(hello());
    static_cast<void>(strangers.back()->turn());
    if (i % 8 == 0) greet(path);
    run(3ms, 1ms);
  }
  run(1s, 5ms);
  const auto open_ones = std::count_if(strangers.begin(), strangers.end(), [&](const auto& shake) {
    return shake->turn().ok() && shake->heard() && !is_closed(*shake);
  });
  EXPECT_LE(open_ones, static_cast<std::ptrdiff_t>(Lobby::kPlacesPerSource));
  EXPECT_GT(open_ones, 0) << "else the bound was not met";
  EXPECT_EQ(path->state(), PathState::kUp);
  EXPECT_EQ(owner->messages, 1 + 126);
  EXPECT_EQ(owner->ups.size(), 1u);
}

TEST_F(Admitting, ACrowdOfTheSameUserComesInTogether) {
  open_owner();
  constexpr std::size_t kCrowd = 24;  // More than one source's places, less than this network can report at once.
  std::vector<std::unique_ptr<TestAgent>> crowd;
  std::vector<Path*> paths;
  for (std::size_t i = 0; i < kCrowd; ++i) {
    crowd.push_back(agent("m" + std::string(i + 1, 'x')));
    paths.push_back(open(*crowd.back()));
  }
  run(200ms, 100us);
  for (Path* path : paths) {
    ASSERT_EQ(path->state(), PathState::kUp);
    greet(path);
  }
  run(20ms, 100us);
  EXPECT_EQ(owner->ups.size(), kCrowd);
}

}  // namespace
}  // namespace hawser::backend::stream
