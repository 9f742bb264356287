// The mailbox by hand: what a peer may say, and what it may not.

#include "runtime/mailbox.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "agent/peer_core.h"
#include "agent/session.h"
#include "base/bytes.h"
#include "base/inside.h"
#include "runtime/test_carrier.h"

namespace hawser::runtime {
namespace {

using agent::Sent;
using wire::RuntimeKind;

constexpr Instant kNow = Instant::from_ns(1'000'000);

class MailboxTest : public testing::Test {
 protected:
  wire::MessageEnvelope envelope(std::uint64_t bytes, std::uint64_t tag = 7) {
    return {.world = 1, .use = wire::MessageUse::kUser, .tag = tag, .bytes = bytes};
  }
  Status hear(const wire::RuntimeMessage& message, Priority priority) {
    wire::RuntimeBuffer buffer;
    const std::string bytes =
        std::string(base::as_text(wire::encode(message, buffer))) + std::string(base::as_text(message.body));
    const std::uint32_t channel = wire::runtime_channel_of(priority);
    return mailbox_.on_message(*peer_->session(), channel, base::as_bytes(bytes), kNow);
  }
  /// In the class that its kind has, or in class realtime.
  Status hear(const wire::RuntimeMessage& message) {
    return hear(message, message.kind == RuntimeKind::kPart ? Priority::kBulk : Priority::kRealtime);
  }
  /// It is said in each class.
  Status hear_last(const wire::RuntimeMessage& message) {
    Status status = hear(message, Priority::kBulk);
    if (status.ok()) status = hear(message, Priority::kCritical);
    return status.ok() ? hear(message, Priority::kRealtime) : status;
  }
  Status hear_eager(std::size_t size, std::uint64_t tag = 7) {
    const std::string body(size, 'e');
    return hear({.kind = RuntimeKind::kEager, .envelope = envelope(size, tag), .body = base::as_bytes(body)});
  }
  Status hear_ask(std::uint64_t id, std::uint64_t bytes = 100'000) {
    return hear({.kind = RuntimeKind::kAsk, .envelope = envelope(bytes), .id = id});
  }
  /// Of a message that lies in `data` and may be read there.
  Status hear_readable(std::uint64_t id, std::span<const std::byte> data) {
    return hear({.kind = RuntimeKind::kAsk,
                 .envelope = envelope(data.size()),
                 .id = id,
                 .address = reinterpret_cast<std::uintptr_t>(data.data())});
  }
  std::shared_ptr<Receive> receive(std::span<std::byte> into) {
    auto made = std::make_shared<Receive>();
    made->pattern = {.world = 1, .source = nullptr, .tag = std::nullopt};
    made->data = into.data();
    made->capacity = into.size();
    made->has_buffer = into.data() != nullptr;
    mailbox_.start(*made, Instant::max(), kNow);
    return made;
  }
  std::shared_ptr<Send> send(std::span<const std::byte> bytes, Priority priority = Priority::kRealtime) {
    auto made = std::make_shared<Send>();
    made->to = Peer(peer_);
    made->envelope = envelope(bytes.size());
    made->data = bytes.data();
    made->priority = priority;
    made->self = made;
    mailbox_.start(*made, Instant::max(), kNow);
    return made;
  }
  void pump() {
    std::size_t work = 0;
    (void)mailbox_.pump(*peer_->session(), &work);
  }
  /// What was said last, decoded.
  wire::RuntimeMessage last() { return wire::decode_runtime(base::as_bytes(carrier_.said.back())).value(); }

  TestCarrier carrier_;
  agent::Inbox inbox_{16};
  Mailbox mailbox_{carrier_};
  std::array<agent::Service*, 1> services_{&mailbox_};
  std::shared_ptr<agent::PeerCore> peer_ = [this] {
    auto peer = std::make_shared<agent::PeerCore>(std::weak_ptr<agent::Core>(), "peer", base::Id128{3, 4});
    peer->use().session = std::make_unique<agent::Session>(peer, proto::NotifyLimits{}, inbox_, services_);
    return peer;
  }();
  // A session and its peer own each other.
  struct Parting {
    std::shared_ptr<agent::PeerCore>& peer;
    ~Parting() { peer->use().session.reset(); }
  } parting_{peer_};
};

TEST_F(MailboxTest, ALargeMessageIsAskedForGrantedAndSentInParts) {
  const std::vector<std::byte> data(100'000, std::byte{5});
  const auto sent = send(data);
  pump();
  ASSERT_EQ(last().kind, RuntimeKind::kAsk);
  EXPECT_EQ(last().envelope.bytes, 100'000U);
  EXPECT_TRUE(mailbox_.awaits(*peer_->session()));
  ASSERT_TRUE(hear({.kind = RuntimeKind::kGrant, .id = last().id, .landing = 9}).ok());
  const std::size_t before = carrier_.said.size();
  pump();
  ASSERT_EQ(carrier_.said.size(), before + 2);
  EXPECT_EQ(last().kind, RuntimeKind::kPart);
  EXPECT_EQ(last().landing, 9U);
  EXPECT_EQ(last().offset, wire::kRuntimeBodyMax);
  EXPECT_TRUE(sent->final);
  EXPECT_TRUE(sent->status.ok());
  EXPECT_FALSE(mailbox_.awaits(*peer_->session()));
}

TEST_F(MailboxTest, PartsGoIntoTheBufferInTheirOrder) {
  std::vector<std::byte> into(10);
  const auto got = receive(into);
  ASSERT_TRUE(hear_ask(5, 10).ok());
  pump();
  ASSERT_EQ(last().kind, RuntimeKind::kGrant);
  EXPECT_EQ(last().id, 5U);
  const std::uint64_t landing = last().landing;
  const std::string part = "abcdef";
  const auto say = [&](std::uint64_t offset, std::string_view bytes) {
    return hear({.kind = RuntimeKind::kPart, .landing = landing, .offset = offset, .body = base::as_bytes(bytes)});
  };
  EXPECT_EQ(say(1, "x").code(), Code::kCorrupt);            // Not the next one.
  EXPECT_EQ(say(0, "0123456789a").code(), Code::kCorrupt);  // More than there is.
  EXPECT_TRUE(say(0, part).ok());
  EXPECT_FALSE(got->final);
  EXPECT_TRUE(say(6, "ghij").ok());
  EXPECT_TRUE(got->final);
  EXPECT_EQ(base::as_text(into), "abcdefghij");
  EXPECT_TRUE(say(10, "z").ok());  // Nobody lands there any more.
}

TEST_F(MailboxTest, ALargeMessageIsReadWhereItLies) {
  carrier_.fetches = true;
  std::vector<std::byte> data(kFetchPart + 10);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::byte>(i * 7);
  std::vector<std::byte> into(data.size());
  const auto got = receive(into);
  ASSERT_TRUE(hear_readable(5, data).ok());
  const std::size_t before = carrier_.said.size();
  pump();  // The first part.
  EXPECT_EQ(carrier_.said.size(), before);
  pump();  // The second one,
  pump();  // and what is said of it.
  ASSERT_EQ(last().kind, RuntimeKind::kFetched);
  EXPECT_EQ(last().id, 5U);
  EXPECT_FALSE(got->final) << "the sender has not said that it was there all the time";
  const std::uint64_t landing = last().landing;
  EXPECT_EQ(hear({.kind = RuntimeKind::kPart, .landing = landing, .body = base::as_bytes("x")}).code(), Code::kCorrupt);
  ASSERT_TRUE(hear({.kind = RuntimeKind::kTaken, .landing = landing}).ok());
  EXPECT_TRUE(got->final);
  EXPECT_TRUE(got->status.ok());
  EXPECT_EQ(into, data);
  EXPECT_TRUE(hear({.kind = RuntimeKind::kTaken, .landing = landing}).ok());  // Nobody lands there any more.
}

TEST_F(MailboxTest, WhatWasReadOfAStoppedMessageIsNone) {
  carrier_.fetches = true;
  const std::vector<std::byte> data(100'000);
  std::vector<std::byte> into(data.size());
  const auto got = receive(into);
  ASSERT_TRUE(hear_readable(5, data).ok());
  pump();
  pump();
  ASSERT_EQ(last().kind, RuntimeKind::kFetched);
  ASSERT_TRUE(hear({.kind = RuntimeKind::kGone, .id = 5}).ok());
  EXPECT_EQ(got->status.code(), Code::kCancelled);
}

TEST_F(MailboxTest, AReceiveThatIsStoppedWhileItReadsTellsTheSender) {
  carrier_.fetches = true;
  const std::vector<std::byte> data(3 * kFetchPart);
  std::vector<std::byte> into(data.size());
  const auto got = receive(into);
  ASSERT_TRUE(hear_readable(5, data).ok());
  pump();
  mailbox_.stop(*got, Status(Code::kCancelled, "enough"), kNow);
  pump();
  ASSERT_EQ(last().kind, RuntimeKind::kFetched);
  EXPECT_TRUE(hear({.kind = RuntimeKind::kTaken, .landing = last().landing}).ok());
  EXPECT_FALSE(mailbox_.awaits(*peer_->session()));
}

TEST_F(MailboxTest, WhatCannotBeReadIsGranted) {
  std::vector<std::byte> into(100'000);
  const auto got = receive(into);
  ASSERT_TRUE(hear({.kind = RuntimeKind::kAsk, .envelope = envelope(into.size()), .id = 5, .address = 1}).ok());
  pump();
  EXPECT_EQ(last().kind, RuntimeKind::kGrant);  // This path reads nothing.
  // One that fails in the middle begins anew.
  carrier_.fetches = true;
  const auto other = receive(into);
  ASSERT_TRUE(hear_readable(6, into).ok());
  carrier_.fetches = false;
  pump();
  pump();
  ASSERT_EQ(last().kind, RuntimeKind::kGrant);
  EXPECT_EQ(last().id, 6U);
  EXPECT_TRUE(hear({.kind = RuntimeKind::kPart, .landing = last().landing, .body = base::as_bytes("x")}).ok());
}

TEST_F(MailboxTest, ASenderIsDoneOnceItsMessageWasRead) {
  carrier_.fetches = true;
  const std::vector<std::byte> data(100'000);
  const auto sent = send(data);
  pump();
  ASSERT_EQ(last().kind, RuntimeKind::kAsk);
  EXPECT_EQ(last().address, reinterpret_cast<std::uintptr_t>(data.data()));
  const std::uint64_t id = last().id;
  EXPECT_FALSE(sent->final);
  ASSERT_TRUE(hear({.kind = RuntimeKind::kFetched, .id = id, .landing = 9}).ok());
  EXPECT_TRUE(sent->final);
  pump();
  EXPECT_EQ(last().kind, RuntimeKind::kTaken);
  EXPECT_EQ(last().landing, 9U);
  EXPECT_TRUE(hear({.kind = RuntimeKind::kFetched, .id = id, .landing = 9}).ok());  // Of one that is over.
  // Who was not told where it lies, or was granted it, has not read it.
  carrier_.fetches = false;
  const auto other = send(data);
  pump();
  EXPECT_EQ(last().address, 0U);
  EXPECT_EQ(hear({.kind = RuntimeKind::kFetched, .id = last().id, .landing = 9}).code(), Code::kCorrupt);
  EXPECT_FALSE(other->final);
  mailbox_.stop(*other, Status(Code::kCancelled, "enough"), kNow);
}

TEST_F(MailboxTest, WordsOfWorldsThatAreNotKnownAreBounded) {
  for (std::size_t i = 0; i < 2 * kEarlyWordsMax; ++i) {
    ASSERT_TRUE(hear_last({.kind = RuntimeKind::kLeft, .world = i}).ok());
  }
  // A peer that asks without end and reads nothing is dropped.
  std::vector<std::byte> into(8);
  carrier_.answer = Sent::kNoCredit;
  std::vector<std::shared_ptr<Receive>> receives;
  for (std::size_t i = 1; i <= kWordsMax + 1; ++i) {
    receives.push_back(receive(into));
    ASSERT_EQ(hear_ask(i, 8).ok(), i <= kWordsMax) << i;
  }
}

struct SilentWatcher final : Watcher {
  void on_close(Instant) override {}
  void on_down(const Peer&, const Status&) override {}
  void on_failed(const Peer&, std::uint32_t, bool) override {}
  void on_left(const Peer&) override {}
  void on_revoke(const Peer&, const Status&) override {}
  void on_agreement(const Peer&, const wire::RuntimeMessage&) override {}
  bool is_misfit(const wire::MessageEnvelope&) override { return false; }
  void on_misfit(const Peer&, const wire::MessageEnvelope&, Instant) override {}
  void on_check(const Peer&, const Question& question, Instant) override {
    checks.emplace_back(question.number, question.digest);
  }
  void on_checked(const Peer&, std::uint64_t number, Code code, Instant) override { overs.emplace_back(number, code); }
  void on_bell(const Peer&, Instant) override { ++bells; }
  int bells = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> checks;
  std::vector<std::pair<std::uint64_t, Code>> overs;
};

TEST_F(MailboxTest, AChecksAnswerIsTheWorldsUntilItIsClosed) {
  const wire::RuntimeMessage check = {.kind = RuntimeKind::kCheck, .world = 1, .number = 5, .digest = 6, .flag = true};
  ASSERT_TRUE(hear(check).ok());
  pump();
  EXPECT_TRUE(carrier_.said.empty()) << "the world is not known yet";
  SilentWatcher watcher;
  mailbox_.add_watcher(1, watcher, std::array{Peer(peer_)});
  EXPECT_TRUE(watcher.checks.empty()) << "what was asked before is asked again";
  ASSERT_TRUE(hear(check).ok());
  ASSERT_TRUE(hear_last({.kind = RuntimeKind::kChecked, .world = 1, .code = Code::kInvalid, .number = 3}).ok());
  EXPECT_EQ(watcher.checks, (std::vector<std::pair<std::uint64_t, std::uint64_t>>{{5, 6}}));
  EXPECT_EQ(watcher.overs, (std::vector<std::pair<std::uint64_t, Code>>{{3, Code::kInvalid}}));
  pump();
  EXPECT_TRUE(carrier_.said.empty());
  mailbox_.remove_watcher(1);
  ASSERT_TRUE(hear(check).ok());
  pump();
  ASSERT_EQ(carrier_.said.size(), wire::kClasses);
  EXPECT_EQ(last().kind, RuntimeKind::kChecked);
  EXPECT_EQ(last().number, 5U);
  EXPECT_EQ(last().code, Code::kDisconnected);
}

TEST_F(MailboxTest, ABellRingsForItsWorld) {
  SilentWatcher watcher, other;
  mailbox_.add_watcher(1, watcher, std::array{Peer(peer_)});
  mailbox_.add_watcher(2, other, std::array{Peer(peer_)});
  ASSERT_TRUE(hear({.kind = RuntimeKind::kBell, .world = 1}).ok());
  EXPECT_EQ(watcher.bells, 1);
  EXPECT_EQ(other.bells, 0);
  mailbox_.tell(Peer(peer_), bell_word(2), kNow);
  pump();
  EXPECT_EQ(last().kind, RuntimeKind::kBell);
  EXPECT_EQ(last().world, 2U);
}

TEST_F(MailboxTest, ChecksForAPeerThatReadsNothingAreBounded) {
  mailbox_.attend(*peer_->session());
  for (std::size_t i = 0; i < 2 * kChecksMax; ++i) {
    mailbox_.tell_if_room(Peer(peer_), check_word(1, {.number = i, .digest = 6}), kNow);
  }
  EXPECT_EQ(mailbox_.left(*peer_->session()), kChecksMax);
  pump();
  EXPECT_EQ(carrier_.said.size(), kChecksMax);
  EXPECT_EQ(last().number, kChecksMax - 1);
}

TEST_F(MailboxTest, NothingIsKeptForAClosedWorld) {
  SilentWatcher watcher;
  mailbox_.add_watcher(1, watcher, {});
  ASSERT_TRUE(hear_eager(10).ok());
  ASSERT_TRUE(hear_ask(4).ok());
  mailbox_.forget_world(1);
  mailbox_.remove_watcher(1);
  EXPECT_EQ(mailbox_.kept_without_world(), 0U);
  ASSERT_TRUE(hear_eager(10).ok());
  ASSERT_TRUE(hear_ask(5).ok());
  EXPECT_EQ(mailbox_.kept_without_world(), 0U);
}

TEST_F(MailboxTest, WhatASenderMayLeaveIsBounded) {
  constexpr std::size_t kSize = 1 << 15;
  for (std::size_t i = 0; i < kEagerWindow / kSize; ++i) ASSERT_TRUE(hear_eager(kSize).ok()) << i;
  EXPECT_EQ(hear_eager(1).code(), Code::kCorrupt);
  std::vector<std::byte> into(kSize);
  EXPECT_TRUE(receive(into)->status.ok());
  EXPECT_TRUE(hear_eager(1).ok());
}

TEST_F(MailboxTest, SoIsTheirNumber) {
  for (std::size_t i = 0; i < kEagerMessages; ++i) ASSERT_TRUE(hear_eager(0).ok()) << i;
  EXPECT_EQ(hear_eager(0).code(), Code::kCorrupt);
}

TEST_F(MailboxTest, SoAreThingsAskedFor) {
  for (std::size_t i = 1; i <= kAsksMax; ++i) ASSERT_TRUE(hear_ask(i).ok()) << i;
  EXPECT_EQ(hear_ask(kAsksMax + 1).code(), Code::kCorrupt);
  EXPECT_TRUE(hear({.kind = RuntimeKind::kGone, .id = 1}).ok());
  EXPECT_EQ(hear_ask(2).code(), Code::kCorrupt);  // By a number that is in use.
  EXPECT_TRUE(hear_ask(1).ok());
}

TEST_F(MailboxTest, ASenderHoldsBackWhatTheReceiverWouldNotKeep) {
  const std::vector<std::byte> data(1 << 15);
  for (std::size_t i = 0; i < kEagerWindow / data.size(); ++i) {
    (void)send(data);
    pump();
    ASSERT_EQ(last().kind, RuntimeKind::kEager);
  }
  const auto more = send(data);
  pump();
  EXPECT_EQ(last().kind, RuntimeKind::kAsk);
  EXPECT_EQ(hear({.kind = RuntimeKind::kFreed, .bytes = kEagerWindow + 1, .messages = 1}).code(), Code::kCorrupt);
  EXPECT_TRUE(hear({.kind = RuntimeKind::kFreed, .bytes = data.size(), .messages = 1}).ok());
  (void)send(data);
  pump();
  EXPECT_EQ(last().kind, RuntimeKind::kEager);
  mailbox_.stop(*more, Status(Code::kCancelled, "enough"), kNow);
  pump();
  EXPECT_EQ(last().kind, RuntimeKind::kGone);
}

TEST_F(MailboxTest, AMessageGoesOnTheChannelOfItsClass) {
  const std::vector<std::byte> data(10), large(100'000);
  std::vector<std::shared_ptr<Send>> sends;
  for (const Priority priority : {Priority::kBulk, Priority::kRealtime, Priority::kCritical}) {
    sends.push_back(send(data, priority));
    sends.push_back(send(large, priority));
  }
  pump();  // The most urgent ones first.
  const auto of = [](Priority priority) { return wire::runtime_channel_of(priority); };
  using Channels = std::vector<std::uint32_t>;
  const Channels small_and_ask = {of(Priority::kCritical), of(Priority::kCritical), of(Priority::kRealtime),
                                  of(Priority::kRealtime), of(Priority::kBulk),     of(Priority::kBulk)};
  ASSERT_EQ(carrier_.channels, small_and_ask);
  // Parts of critical messages go in their class. The others go in class bulk, those of realtime ones first.
  for (std::size_t i = 1; i < sends.size(); i += 2) {
    ASSERT_TRUE(hear({.kind = RuntimeKind::kGrant, .id = sends[i]->id, .landing = i}).ok());
  }
  carrier_.channels.clear();
  carrier_.said.clear();
  pump();
  EXPECT_EQ(carrier_.channels, (Channels{of(Priority::kCritical), of(Priority::kCritical), of(Priority::kBulk),
                                         of(Priority::kBulk), of(Priority::kBulk), of(Priority::kBulk)}));
  std::vector<std::uint64_t> landings;
  for (const std::string& said : carrier_.said) {
    landings.push_back(wire::decode_runtime(base::as_bytes(said)).value().landing);
  }
  EXPECT_EQ(landings, (std::vector<std::uint64_t>{5, 5, 3, 3, 1, 1}));
  for (const auto& each : sends) EXPECT_TRUE(each->final);
}

TEST_F(MailboxTest, AMessageThatNothingStandsBeforeGoesAtOnce) {
  const std::vector<std::byte> data(10), large(kEagerMax + 1);
  carrier_.is_up = true;
  EXPECT_TRUE(send(data)->final);
  EXPECT_EQ(last().kind, RuntimeKind::kEager);
  const auto asked = send(large);
  EXPECT_EQ(last().kind, RuntimeKind::kAsk);
  EXPECT_FALSE(asked->final);
  EXPECT_EQ(carrier_.said.size(), 2U);
  mailbox_.end(*peer_->session(), Status(Code::kDisconnected, "over"));
}

TEST_F(MailboxTest, AMessageWaitsBehindWhatWaitsForATurn) {
  const std::vector<std::byte> data(10);
  carrier_.is_up = true;
  carrier_.full = {wire::runtime_channel_of(Priority::kRealtime)};
  const auto first = send(data);
  carrier_.full.clear();
  const auto second = send(data), critical = send(data, Priority::kCritical);
  EXPECT_TRUE(carrier_.said.empty());
  pump();
  EXPECT_TRUE(first->final && second->final && critical->final);
  mailbox_.tell(Peer(peer_), {{.kind = RuntimeKind::kFreed, .messages = 1}, {}}, kNow);
  EXPECT_FALSE(send(data)->final) << "it overtakes a word";
  pump();
  carrier_.is_up = false;
  EXPECT_FALSE(send(data)->final) << "no path leads to the peer";
  mailbox_.end(*peer_->session(), Status(Code::kDisconnected, "over"));
}

TEST_F(MailboxTest, AClassWithoutCreditHoldsBackNoOther) {
  const std::vector<std::byte> data(10);
  carrier_.full = {wire::runtime_channel_of(Priority::kRealtime), wire::runtime_channel_of(Priority::kBulk)};
  const auto bulk = send(data, Priority::kBulk), realtime = send(data), critical = send(data, Priority::kCritical);
  pump();
  EXPECT_TRUE(critical->final);
  EXPECT_FALSE(realtime->final || bulk->final);
  EXPECT_FALSE(mailbox_.is_silent(*peer_->session()));
  carrier_.full.erase(wire::runtime_channel_of(Priority::kBulk));
  pump();
  EXPECT_TRUE(bulk->final);
  carrier_.full.clear();
  pump();
  EXPECT_TRUE(realtime->final);
  EXPECT_TRUE(mailbox_.is_silent(*peer_->session()));
}

TEST_F(MailboxTest, EachClassHasAWindowOfItsOwn) {
  const std::vector<std::byte> data(1 << 15);
  for (std::size_t i = 0; i < kEagerWindow / data.size(); ++i) (void)send(data, Priority::kBulk);
  const auto asked = send(data, Priority::kBulk);
  (void)send(data, Priority::kCritical);
  pump();
  EXPECT_FALSE(asked->final);
  EXPECT_EQ(std::ranges::count(carrier_.channels, wire::kRuntimeCriticalChannel), 1);
  const wire::RuntimeMessage freed{.kind = RuntimeKind::kFreed, .bytes = data.size(), .messages = 2};
  EXPECT_EQ(hear(freed).code(), Code::kCorrupt) << "none of class realtime were sent";
  mailbox_.stop(*asked, Status(Code::kCancelled, "enough"), kNow);
  pump();
  ASSERT_EQ(last().kind, RuntimeKind::kGone);
  EXPECT_EQ(carrier_.channels.back(), wire::kRuntimeBulkChannel) << "it does not overtake what it speaks of";
}

TEST_F(MailboxTest, WhatWasReceivedIsFreedInItsClass) {
  const std::string body(1 << 15, 'e');
  const wire::RuntimeMessage eager{
      .kind = RuntimeKind::kEager, .envelope = envelope(body.size()), .body = base::as_bytes(body)};
  std::vector<std::byte> into(body.size());
  for (std::size_t i = 0; i <= kEagerWindow / 4 / body.size(); ++i) {
    ASSERT_TRUE(hear(eager, Priority::kCritical).ok());
    EXPECT_TRUE(receive(into)->final);
  }
  pump();
  ASSERT_EQ(last().kind, RuntimeKind::kFreed);
  EXPECT_EQ(last().priority, Priority::kCritical);
  EXPECT_GT(last().bytes, kEagerWindow / 4);
  EXPECT_EQ(carrier_.channels.back(), wire::kRuntimeChannel);
}

TEST_F(MailboxTest, WhatASenderMayLeaveIsBoundedInEachClass) {
  for (const Priority priority : {Priority::kCritical, Priority::kRealtime, Priority::kBulk}) {
    const std::string body(wire::kRuntimeBodyMax, 'e');
    const wire::RuntimeMessage eager{
        .kind = RuntimeKind::kEager, .envelope = envelope(body.size()), .body = base::as_bytes(body)};
    for (std::size_t i = 0; i < kEagerWindow / body.size(); ++i) ASSERT_TRUE(hear(eager, priority).ok());
    EXPECT_EQ(hear(eager, priority).code(), Code::kCorrupt);
  }
}

TEST_F(MailboxTest, AMessageInAClassThatItsKindDoesNotHaveIsCorrupt) {
  const auto refuses = [&](const wire::RuntimeMessage& message, Priority priority) {
    return hear(message, priority).code() == Code::kCorrupt;
  };
  const std::string body = "x";
  for (const Priority priority : {Priority::kCritical, Priority::kBulk}) {
    wire::RuntimeMessage eager{.kind = RuntimeKind::kEager, .envelope = envelope(1), .body = base::as_bytes(body)};
    EXPECT_FALSE(refuses(eager, priority));
    for (const wire::MessageUse use : {wire::MessageUse::kCollective, wire::MessageUse::kCall}) {
      eager.envelope.use = use;
      EXPECT_TRUE(refuses(eager, priority));
      EXPECT_FALSE(refuses(eager, Priority::kRealtime));
    }
    EXPECT_TRUE(refuses({.kind = RuntimeKind::kGrant, .id = 1, .landing = 2}, priority));
    EXPECT_TRUE(refuses({.kind = RuntimeKind::kFreed}, priority));
    EXPECT_TRUE(refuses({.kind = RuntimeKind::kBell, .world = 1}, priority));
    EXPECT_FALSE(refuses({.kind = RuntimeKind::kGone, .id = 1}, priority));
  }
  EXPECT_TRUE(refuses({.kind = RuntimeKind::kPart, .landing = 1}, Priority::kRealtime));
}

TEST_F(MailboxTest, ClassesOvertakeOneAnotherAndTheirOwnMessagesDoNot) {
  const auto say = [&](std::string_view text, Priority priority) {
    return hear({.kind = RuntimeKind::kEager, .envelope = envelope(text.size()), .body = base::as_bytes(text)},
                priority)
        .ok();
  };
  ASSERT_TRUE(say("c1", Priority::kCritical) && say("b1", Priority::kBulk) && say("c2", Priority::kCritical));
  ASSERT_TRUE(say("r1", Priority::kRealtime) && say("b2", Priority::kBulk));
  for (const std::string_view next : {"c1", "b1", "c2", "r1", "b2"}) {
    std::vector<std::byte> into(2);
    EXPECT_TRUE(receive(into)->final);
    EXPECT_EQ(base::as_text(into), next);
  }
}

TEST_F(MailboxTest, ALastWordCountsOnceEachClassBroughtIt) {
  SilentWatcher watcher;
  mailbox_.add_watcher(1, watcher, std::array{Peer(peer_)});
  const auto over = [](std::uint64_t number) {
    return wire::RuntimeMessage{.kind = RuntimeKind::kChecked, .world = 1, .code = Code::kInvalid, .number = number};
  };
  ASSERT_TRUE(hear(over(3), Priority::kBulk).ok() && hear(over(4), Priority::kBulk).ok());
  ASSERT_TRUE(hear(over(3), Priority::kCritical).ok() && hear(over(4), Priority::kCritical).ok());
  EXPECT_TRUE(watcher.overs.empty()) << "messages of class realtime before it may be on their way";
  ASSERT_TRUE(hear(over(3), Priority::kRealtime).ok());
  EXPECT_EQ(watcher.overs.size(), 1U);
  ASSERT_TRUE(hear(over(4), Priority::kRealtime).ok());
  EXPECT_EQ(watcher.overs.size(), 2U);
  ASSERT_TRUE(hear(over(5), Priority::kBulk).ok());
  EXPECT_EQ(hear(over(6), Priority::kRealtime).code(), Code::kCorrupt) << "the classes tell different things";
  mailbox_.remove_watcher(1);
}

TEST_F(MailboxTest, LastWordsInOneClassOnlyAreBounded) {
  const wire::RuntimeMessage left{.kind = RuntimeKind::kLeft, .world = 5};
  for (std::size_t i = 0; i < kLastWordsMax; ++i) ASSERT_TRUE(hear(left, Priority::kBulk).ok());
  EXPECT_EQ(hear(left, Priority::kBulk).code(), Code::kCorrupt);
}

TEST_F(MailboxTest, ALastWordGoesBehindWhatIsInLine) {
  const std::vector<std::byte> data(10);
  carrier_.full = {wire::kRuntimeChannel, wire::kRuntimeBulkChannel, wire::kRuntimeCriticalChannel};
  (void)send(data, Priority::kCritical);
  (void)send(data, Priority::kRealtime);
  (void)send(data, Priority::kBulk);
  mailbox_.tell(Peer(peer_), left_word(1), kNow);
  carrier_.full.clear();
  pump();
  std::map<std::uint32_t, std::vector<RuntimeKind>> kinds;
  for (std::size_t i = 0; i < carrier_.said.size(); ++i) {
    kinds[carrier_.channels[i]].push_back(wire::decode_runtime(base::as_bytes(carrier_.said[i])).value().kind);
  }
  ASSERT_EQ(kinds.size(), wire::kClasses);
  for (const auto& [channel, its] : kinds) {
    EXPECT_EQ(its, (std::vector<RuntimeKind>{RuntimeKind::kEager, RuntimeKind::kLeft})) << channel;
  }
}

TEST_F(MailboxTest, GrantsThatAreWrong) {
  EXPECT_TRUE(hear({.kind = RuntimeKind::kGrant, .id = 77, .landing = 1}).ok());  // Of one that was stopped.
  const std::vector<std::byte> data(100'000);
  const auto sent = send(data);
  pump();
  const std::uint64_t id = last().id;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(hear({.kind = RuntimeKind::kGrant, .id = id, .landing = 0}).code(), Code::kCorrupt);
  }
  EXPECT_TRUE(hear({.kind = RuntimeKind::kGrant, .id = id, .landing = 1}).ok());
  EXPECT_EQ(hear({.kind = RuntimeKind::kGrant, .id = id, .landing = 2}).code(), Code::kCorrupt);
  mailbox_.end(*peer_->session(), Status(Code::kDisconnected, "gone"));
  EXPECT_TRUE(sent->final);
  EXPECT_EQ(sent->status.code(), Code::kDisconnected);
}

TEST_F(MailboxTest, NoBufferIsMadeOfASendersWordAlone) {
  ASSERT_TRUE(hear_ask(1, kOwnBufferMax + 1).ok());
  const auto refused = receive({});
  EXPECT_TRUE(refused->final);
  EXPECT_EQ(refused->status.code(), Code::kInvalid);
  EXPECT_NE(mailbox_.probe(refused->pattern), nullptr);  // It stays first.
  EXPECT_TRUE(hear({.kind = RuntimeKind::kGone, .id = 1}).ok());
  EXPECT_EQ(mailbox_.probe(refused->pattern), nullptr);
}

TEST_F(MailboxTest, WhatIsNoMessageIsCorrupt) {
  EXPECT_EQ(mailbox_.on_message(*peer_->session(), wire::kRuntimeChannel, base::as_bytes("?"), kNow).code(),
            Code::kCorrupt);
}

TEST_F(MailboxTest, TheEndOfASessionEndsWhatWaitsForItsPeer) {
  std::vector<std::byte> into(10);
  const auto any = receive(into);
  auto from_peer = std::make_shared<Receive>();
  from_peer->pattern = {.world = 1, .source = source_of(Peer(peer_)), .tag = 3};
  mailbox_.start(*from_peer, Instant::max(), kNow);
  mailbox_.end(*peer_->session(), Status(Code::kDisconnected, "gone"));
  EXPECT_TRUE(from_peer->final);
  EXPECT_FALSE(any->final);  // The world decides about those.
  mailbox_.stop_any(1, Status(Code::kDisconnected, "one of them is gone"));
  EXPECT_TRUE(any->final);
}

TEST_F(MailboxTest, OperationsUnderWayAreBounded) {
  std::vector<std::shared_ptr<Receive>> all;
  for (std::size_t i = 0; i < kOperationsMax; ++i) ASSERT_FALSE(all.emplace_back(receive({}))->final) << i;
  const auto refused = receive({});
  EXPECT_TRUE(refused->final);
  EXPECT_EQ(refused->status.code(), Code::kBusy);
  Receive standing;  // The world's own is none of them.
  standing.is_standing = true;
  standing.pattern = {.world = 1, .use = wire::MessageUse::kCall};
  mailbox_.start(standing, Instant::max(), kNow);
  EXPECT_FALSE(standing.final);
  mailbox_.stop(*all.front(), Status(Code::kCancelled, "enough"), kNow);
  const auto taken = receive({});
  EXPECT_FALSE(taken->final);
  mailbox_.stop_all(1, Status(Code::kCancelled, "enough"));
}

TEST_F(MailboxTest, AMessageIsDiscardedByWhatWouldReceiveIt) {
  ASSERT_TRUE(hear_eager(10, 3).ok());
  ASSERT_TRUE(hear_ask(5).ok());
  Peer from;
  wire::MessageEnvelope found;
  EXPECT_FALSE(mailbox_.discard({.world = 2, .source = nullptr, .tag = std::nullopt}, &from, &found));
  ASSERT_TRUE(mailbox_.discard({.world = 1, .source = nullptr, .tag = std::nullopt}, &from, &found));
  EXPECT_EQ(found.tag, 3U);
  EXPECT_EQ(source_of(from), peer_.get());
  ASSERT_TRUE(mailbox_.discard({.world = 1, .source = nullptr, .tag = std::nullopt}, &from, &found));
  EXPECT_FALSE(mailbox_.discard({.world = 1, .source = nullptr, .tag = std::nullopt}, &from, &found));
}

TEST_F(MailboxTest, DeadlinesEndWhatWaits) {
  std::vector<std::byte> into(10);
  auto late = std::make_shared<Receive>();
  late->pattern = {.world = 1, .source = nullptr, .tag = 3};
  late->data = into.data();
  late->capacity = into.size();
  mailbox_.start(*late, kNow + std::chrono::milliseconds(1), kNow);
  EXPECT_EQ(mailbox_.next_deadline(), kNow + std::chrono::milliseconds(1));
  EXPECT_EQ(mailbox_.expire(kNow), 0U);
  EXPECT_EQ(mailbox_.expire(kNow + std::chrono::milliseconds(1)), 1U);
  EXPECT_EQ(late->status.code(), Code::kTimedOut);
}

}  // namespace
}  // namespace hawser::runtime
