#include "base/events.h"

#include <gtest/gtest.h>

#include <array>

namespace hawser::base {
namespace {

using namespace std::chrono_literals;

TEST(EventFd, SignalsAreTakenTogether) {
  const Result<EventFd> event = EventFd::open();
  ASSERT_TRUE(event);
  EXPECT_FALSE(event->drain());
  event->signal();
  event->signal();
  EXPECT_TRUE(event->drain());
  EXPECT_FALSE(event->drain());
}

TEST(Epoll, TellsWhichDescriptor) {
  const Result<Epoll> epoll = Epoll::open();
  const Result<EventFd> a = EventFd::open();
  const Result<EventFd> b = EventFd::open();
  ASSERT_TRUE(epoll && a && b);
  ASSERT_TRUE(epoll->add(a->fd(), EPOLLIN, 1).ok());
  ASSERT_TRUE(epoll->add(b->fd(), EPOLLIN, UINT64_MAX).ok());
  std::array<epoll_event, 4> events{};
  EXPECT_EQ(*epoll->wait(events, Duration(0)), 0u);
  b->signal();
  ASSERT_EQ(*epoll->wait(events, Duration::max()), 1u);
  const std::uint64_t cookie = events[0].data.u64;  // by value: the struct is packed
  const std::uint32_t ready = events[0].events;
  EXPECT_EQ(cookie, UINT64_MAX);
  EXPECT_EQ(ready, static_cast<std::uint32_t>(EPOLLIN));
  a->signal();
  EXPECT_EQ(*epoll->wait(std::span(events).first(1), 1s), 1u);
  EXPECT_EQ(*epoll->wait(events, -1s), 2u);
  ASSERT_TRUE(epoll->modify(a->fd(), 0, 1).ok());
  ASSERT_TRUE(epoll->remove(b->fd()).ok());
  EXPECT_EQ(*epoll->wait(events, Duration(0)), 0u);
  EXPECT_EQ(epoll->remove(b->fd()).code(), Code::kNotFound);
}

TEST(Epoll, WaitsItsTimeOut) {
  const Result<Epoll> epoll = Epoll::open();
  ASSERT_TRUE(epoll);
  std::array<epoll_event, 1> events{};
  const Instant start = Clock::steady().now();
  EXPECT_EQ(*epoll->wait(events, 300us), 0u);
  EXPECT_GE(Clock::steady().now() - start, 300us);
}

}  // namespace
}  // namespace hawser::base
