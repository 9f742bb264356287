#include "directory/desk.h"

#include <gtest/gtest.h>

namespace hawser::directory {
namespace {

Request request(Request::Kind kind, std::string key, std::string value = {}) {
  return {.kind = kind, .key = std::move(key), .value = std::move(value)};
}

TEST(Desk, ARequestWaitsAndItsAnswerIsTakenOnce) {
  Desk desk;
  SharedStore store;
  const Ticket ticket = desk.submit(request(Request::Kind::kGet, "k"));
  EXPECT_FALSE(desk.poll(ticket, store));
  const auto taken = desk.take();
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->key, "k");
  EXPECT_FALSE(desk.take());
  desk.answer(*taken, Status(Code::kNotFound, "no"));
  EXPECT_EQ(desk.poll(ticket, store)->status.code(), Code::kNotFound);
  EXPECT_FALSE(desk.poll(ticket, store));
}

TEST(Desk, WrongRequestsAnswerAtOnce) {
  Desk desk;
  SharedStore store;
  const auto message = [&](Request wrong) {
    const auto event = desk.poll(desk.submit(std::move(wrong)), store);
    EXPECT_EQ(event->status.code(), Code::kInvalid);
    return std::string(event->status.message());
  };
  EXPECT_EQ(message(request(Request::Kind::kGet, "")), "directory: an empty key");
  EXPECT_EQ(message(request(Request::Kind::kList, std::string(1025, 'k'))), "directory: a key of 1025 bytes");
  EXPECT_EQ(message(request(Request::Kind::kPut, "k", std::string((1 << 20) + 1, 'v'))),
            "directory: a value of 1048577 bytes under \"k\"");
  Request negative = request(Request::Kind::kPut, "k");
  negative.options.lease = Duration(-1);
  EXPECT_EQ(message(negative), "directory: a lease of -1 ns under \"k\"");
  EXPECT_FALSE(desk.has_requests());
}

TEST(Desk, BeyondItsBoundsAnswersBusy) {
  Desk desk;
  SharedStore store;
  for (std::size_t i = 0; i < kRequestsMax; ++i) desk.submit(request(Request::Kind::kGet, "k"));
  const Ticket refused = desk.submit(request(Request::Kind::kGet, "k"));
  EXPECT_EQ(desk.poll(refused, store)->status.code(), Code::kBusy);
  EXPECT_EQ(desk.poll(refused, store)->status.code(), Code::kBusy);
  desk.answer(*desk.take(), {});
  EXPECT_NE(desk.submit(request(Request::Kind::kGet, "k")), refused);
}

TEST(Desk, AnswersThatNobodyTakesAreBoundedToo) {
  Desk desk;
  SharedStore store;
  std::vector<Ticket> tickets;
  for (std::size_t i = 0; i < kTicketsMax; ++i) {
    tickets.push_back(desk.submit(request(Request::Kind::kGet, "k")));
    desk.answer(*desk.take(), {});
  }
  EXPECT_EQ(desk.poll(desk.submit(request(Request::Kind::kGet, "k")), store)->status.code(), Code::kBusy);
  desk.cancel(tickets.front());
  EXPECT_FALSE(desk.poll(desk.submit(request(Request::Kind::kGet, "k")), store));
}

TEST(Desk, ACancelledRequestIsNotRun) {
  Desk desk;
  SharedStore store;
  const Ticket first = desk.submit(request(Request::Kind::kPut, "a"));
  desk.submit(request(Request::Kind::kPut, "b"));
  desk.cancel(first);
  const auto running = desk.take();
  EXPECT_EQ(running->key, "b");
  desk.cancel(running->ticket);
  desk.put_back(*running);
  EXPECT_FALSE(desk.take());
  desk.answer(*running, {});
  EXPECT_FALSE(desk.poll(running->ticket, store));
}

TEST(Desk, AWatchWhoseBeginningFailedIsOver) {
  Desk desk;
  SharedStore store;
  const Ticket ticket = desk.submit(request(Request::Kind::kWatch, ""));
  EXPECT_TRUE(desk.has_watches());
  desk.answer(*desk.take(), Status(Code::kFailed, "no folder"));
  EXPECT_FALSE(desk.has_watches());
  EXPECT_EQ(desk.poll(ticket, store)->status.code(), Code::kFailed);
  EXPECT_FALSE(desk.poll(ticket, store));
}

TEST(Desk, ALaggingWatchGetsEverythingAgain) {
  Desk desk;
  SharedStore shared;
  const auto with_store = [&](auto&& use) {
    base::MutexLock lock(shared.mutex);
    use(shared.store);
  };
  const Ticket ticket = desk.submit(request(Request::Kind::kWatch, ""));
  desk.answer_listing(*desk.take(), shared);
  EXPECT_EQ(desk.poll(ticket, shared)->entries.size(), 0u);
  with_store([](Store& store) {
    for (std::size_t i = 0; i < kTombstonesMax + 2; ++i) {
      store.put("gone", "", 1, Instant::max());
      store.erase("gone");
      store.put(std::to_string(i), "", 1, Instant::max());
      store.erase(std::to_string(i));
    }
    store.put("here", "v", 9, Instant::max());
  });
  const auto event = desk.poll(ticket, shared);
  EXPECT_EQ(event->kind, DirectoryEvent::Kind::kAnswer);
  ASSERT_EQ(event->entries.size(), 1u);
  EXPECT_EQ(event->entries[0].key, "here");
  EXPECT_FALSE(desk.poll(ticket, shared));
}

}  // namespace
}  // namespace hawser::directory
