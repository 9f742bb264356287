#include "runtime/matcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <unordered_set>
#include <vector>

#include "base/rng.h"

namespace hawser::runtime {
namespace {

/// Sources are told apart by their address alone.
const std::vector<int> kSources(4);
const void* source(int number) { return &kSources[static_cast<std::size_t>(number)]; }

wire::MessageEnvelope envelope(std::uint64_t tag, std::uint64_t world = 1,
                               wire::MessageUse use = wire::MessageUse::kUser) {
  return {.world = world, .use = use, .tag = tag};
}

std::unique_ptr<Arrived> message(int from, std::uint64_t tag) {
  auto arrived = std::make_unique<Arrived>();
  arrived->source = source(from);
  arrived->envelope = envelope(tag);
  return arrived;
}

std::unique_ptr<Receive> receive(const void* from, std::optional<std::uint64_t> tag) {
  auto made = std::make_unique<Receive>();
  made->pattern = {.world = 1, .source = from, .tag = tag};
  return made;
}

TEST(Matcher, TheOldestReceiveThatFitsGetsTheMessage) {
  Matcher matcher;
  const auto any = receive(nullptr, std::nullopt), exact = receive(source(1), 7), second = receive(source(1), 7);
  matcher.wait(*any);
  matcher.wait(*exact);
  matcher.wait(*second);
  EXPECT_EQ(matcher.take_receive(envelope(7), source(1)), any.get());
  EXPECT_EQ(matcher.take_receive(envelope(7), source(1)), exact.get());
  EXPECT_EQ(matcher.take_receive(envelope(7), source(1)), second.get());
  EXPECT_EQ(matcher.take_receive(envelope(7), source(1)), nullptr);
  EXPECT_EQ(matcher.waiting(), 0U);
  matcher.wait(*exact);
  matcher.wait(*any);
  EXPECT_EQ(matcher.take_receive(envelope(7), source(1)), exact.get());
  matcher.forget(*any);
}

TEST(Matcher, FindsAMessageOfAnotherCollectiveByItsNumber) {
  Matcher matcher;
  const auto keep = [&](std::uint64_t world, std::uint64_t number, std::uint64_t digest) {
    auto arrived = message(1, number);
    arrived->envelope = envelope(number, world, wire::MessageUse::kCollective);
    arrived->envelope.digest = digest;
    return &matcher.keep(std::move(arrived));
  };
  EXPECT_EQ(matcher.find_misfit(1, 7, 5), nullptr);
  keep(1, 7, 5);
  keep(2, 7, 6);
  keep(1, 8, 6);
  EXPECT_EQ(matcher.find_misfit(1, 7, 5), nullptr);
  const Arrived* const other = keep(1, 7, 6);
  EXPECT_EQ(matcher.find_misfit(1, 7, 5), other);
  EXPECT_NE(matcher.find_misfit(1, 7, std::nullopt), nullptr);
  EXPECT_EQ(matcher.find_misfit(1, 9, std::nullopt), nullptr);
}

TEST(Matcher, TheOldestMessageThatFitsIsGiven) {
  Matcher matcher;
  Arrived& first = matcher.keep(message(1, 7));
  Arrived& other = matcher.keep(message(2, 7));
  Arrived& last = matcher.keep(message(1, 7));
  EXPECT_EQ(matcher.find({.world = 1, .source = source(1), .tag = 7}), &first);
  EXPECT_EQ(matcher.find({.world = 1, .source = nullptr, .tag = 7}), &first);
  EXPECT_EQ(matcher.find({.world = 1, .source = source(2), .tag = std::nullopt}), &other);
  EXPECT_EQ(matcher.find({.world = 1, .source = source(3), .tag = std::nullopt}), nullptr);
  matcher.drop(first);
  EXPECT_EQ(matcher.find({.world = 1, .source = source(1), .tag = 7}), &last);
  EXPECT_EQ(matcher.kept(), 2U);
}

TEST(Matcher, WorldsAndUsesDoNotMix) {
  Matcher matcher;
  const auto any = receive(nullptr, std::nullopt);
  matcher.wait(*any);
  EXPECT_EQ(matcher.take_receive(envelope(7, 2), source(1)), nullptr);
  EXPECT_EQ(matcher.take_receive(envelope(7, 1, wire::MessageUse::kCollective), source(1)), nullptr);
  EXPECT_EQ(matcher.take_receive(envelope(7), source(1)), any.get());
  matcher.keep(message(1, 7));
  EXPECT_EQ(matcher.find({.world = 2}), nullptr);
  EXPECT_EQ(matcher.find({.world = 1, .use = wire::MessageUse::kCollective}), nullptr);
}

TEST(Matcher, AnySourceIsAnyMember) {
  Matcher matcher;
  const std::unordered_set<const void*> members = {source(1), source(2)};
  const auto any = receive(nullptr, 7);
  any->pattern.members = &members;
  matcher.keep(message(3, 7));
  EXPECT_EQ(matcher.find(any->pattern), nullptr);
  matcher.wait(*any);
  EXPECT_EQ(matcher.take_receive(envelope(7), source(3)), nullptr);
  EXPECT_EQ(matcher.take_receive(envelope(7), source(2)), any.get());
}

TEST(Matcher, AForgottenReceiveGetsNothing) {
  Matcher matcher;
  const auto exact = receive(source(1), 7), any = receive(nullptr, 7);
  matcher.wait(*exact);
  matcher.wait(*any);
  matcher.forget(*exact);
  matcher.forget(*exact);
  EXPECT_EQ(matcher.waiting(), 1U);
  EXPECT_EQ(matcher.take_receive(envelope(7), source(1)), any.get());
}

/// A plain list of each, which says what must come out.
TEST(Matcher, AgreesWithAPlainList) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    base::Rng rng(seed);
    Matcher matcher;
    std::deque<std::unique_ptr<Receive>> waiting;
    std::deque<Arrived*> kept;
    const auto fits = [](const Pattern& pattern, const wire::MessageEnvelope& of, const void* from) {
      return (pattern.source == nullptr || pattern.source == from) && (!pattern.tag || *pattern.tag == of.tag);
    };
    for (int step = 0; step < 300; ++step) {
      const int from = static_cast<int>(rng.u64() % 3);
      const std::uint64_t tag = rng.u64() % 3;
      if (rng.u64() % 2 == 0) {
        auto fresh = message(from, tag);
        const auto expected = std::ranges::find_if(
            waiting, [&](const auto& each) { return fits(each->pattern, fresh->envelope, fresh->source); });
        Receive* const got = matcher.take_receive(fresh->envelope, fresh->source);
        ASSERT_EQ(got, expected == waiting.end() ? nullptr : expected->get()) << seed;
        if (got == nullptr) {
          kept.push_back(&matcher.keep(std::move(fresh)));
        } else {
          waiting.erase(expected);
        }
      } else {
        auto fresh = receive(rng.u64() % 3 == 0 ? nullptr : source(from),
                             rng.u64() % 3 == 0 ? std::nullopt : std::optional(tag));
        const auto expected = std::ranges::find_if(
            kept, [&](const Arrived* each) { return fits(fresh->pattern, each->envelope, each->source); });
        Arrived* const got = matcher.find(fresh->pattern);
        ASSERT_EQ(got, expected == kept.end() ? nullptr : *expected) << seed;
        if (got == nullptr) {
          matcher.wait(*fresh);
          waiting.push_back(std::move(fresh));
        } else {
          matcher.drop(*got);
          kept.erase(expected);
        }
      }
      ASSERT_EQ(matcher.waiting(), waiting.size());
      ASSERT_EQ(matcher.kept(), kept.size());
    }
  }
}

TEST(Matcher, ManyTagsLeaveNothingBehind) {
  Matcher matcher;
  const auto one = receive(source(1), 0);
  for (std::uint64_t tag = 0; tag < 100'000; ++tag) {
    one->pattern.tag = tag;
    matcher.wait(*one);
    ASSERT_EQ(matcher.take_receive(envelope(tag), source(1)), one.get());
  }
  EXPECT_LE(matcher.buckets(), 4097U);
}

}  // namespace
}  // namespace hawser::runtime
