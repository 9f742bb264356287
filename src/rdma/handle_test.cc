#include "rdma/handle.h"

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/inside.h"
#include "wire/card.h"
#include "wire/grant.h"

namespace hawser::rdma {
namespace {

std::string card_of(std::initializer_list<const char*> backends) {
  wire::Card card;
  card.name = "owner";
  card.incarnation = {1, 2};
  card.revision = 1;
  card.kind = wire::CardKind::kPartial;
  for (const char* name : backends) card.backends.push_back({.name = name, .address = "somewhere"});
  return wire::encode(card).value();
}

wire::Grant grant_of_region() {
  return {.owner_name = "owner",
          .owner = {1, 2},
          .key = {5, 6},
          .index = 7,
          .generation = 8,
          .size = 1000,
          .rights = Rights::kReadWrite,
          .region_name = "rdma buffer 42"};
}

RemoteBuffer buffer_of(std::string card, const wire::Grant& grant = grant_of_region(), std::string name = {}) {
  auto core = std::make_shared<BufferCore>();
  core->id = 42;
  core->token = {3, 4};
  core->whole = 1000;
  core->card = std::move(card);
  core->grant = wire::encode(grant).value();
  core->name = std::move(name);
  return RemoteBuffer(std::move(core), 0, 1000);
}

TEST(RdmaHandle, C13_HandleComesBackAsItWas) {
  const RemoteBuffer part = buffer_of(card_of({"shm", "tcp"})).slice(100, 50)->slice(10, 20).value();
  const RemoteBuffer back = RemoteBuffer::decode(part.encode()).value();
  EXPECT_EQ(back.id(), 42u);
  EXPECT_EQ(back.offset(), 110u);
  EXPECT_EQ(back.size(), 20u);
  EXPECT_EQ(back.owner(), "owner");
  EXPECT_EQ(to_string(back.owner_incarnation()), "00000000000000010000000000000002");
  EXPECT_EQ(core_of(back)->token, (base::Id128{3, 4}));
  EXPECT_EQ(core_of(back)->whole, 1000u);
  EXPECT_EQ(core_of(back)->grant, core_of(part)->grant);
  EXPECT_EQ(back.name(), "");
  EXPECT_EQ(back.encode(), part.encode());
}

TEST(RdmaHandle, ANameTravelsWithTheHandle) {
  const RemoteBuffer back =
      RemoteBuffer::decode(buffer_of(card_of({"tcp"}), grant_of_region(), "weights").encode()).value();
  EXPECT_EQ(back.name(), "weights");
}

TEST(RdmaHandle, AGrantThatIsNotOfTheCardsOwnerOrNotForEveryHolderIsCorrupt) {
  wire::Grant of_another = grant_of_region(), bound = grant_of_region(), once = grant_of_region();
  of_another.owner = {1, 3};
  bound.holder = {9, 9};
  once.single_use = true;
  for (const wire::Grant& grant : {of_another, bound, once}) {
    EXPECT_EQ(RemoteBuffer::decode(buffer_of(card_of({"tcp"}), grant).encode()).error().code(), Code::kCorrupt);
  }
}

TEST(RdmaHandle, C13_ContextsOfUnknownBackendsAreCarriedAlong) {
  const RemoteBuffer back = RemoteBuffer::decode(buffer_of(card_of({"martian", "tcp"})).encode()).value();
  EXPECT_EQ(back.contexts(), (std::vector<std::string>{"martian", "tcp"}));
}

TEST(RdmaHandle, BytesThatAreNoHandleAreCorrupt) {
  const std::string good = buffer_of(card_of({"tcp"})).encode();
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_EQ(RemoteBuffer::decode(std::string_view(good).substr(0, size)).error().code(), Code::kCorrupt) << size;
  }
  EXPECT_EQ(RemoteBuffer::decode(good + "x").error().code(), Code::kCorrupt);
  EXPECT_EQ(RemoteBuffer::decode("something else altogether").error().code(), Code::kCorrupt);
  EXPECT_EQ(RemoteBuffer::decode(buffer_of("no card").encode()).error().code(), Code::kCorrupt);
}

TEST(RdmaHandle, OtherVersionsAreToldApart) {
  for (const auto& [version, whose] : {std::pair('\x01', "an earlier"), {'\x02', "an earlier"}, {'\x04', "a later"}}) {
    std::string other = buffer_of(card_of({"tcp"})).encode();
    other[4] = version;
    const Status why = RemoteBuffer::decode(other).error();
    EXPECT_EQ(why.code(), Code::kUnsupported);
    EXPECT_NE(why.to_string().find(whose), std::string::npos) << why.to_string();
    EXPECT_NE(why.to_string().find("ask the owner for the handle anew"), std::string::npos) << why.to_string();
  }
}

TEST(RdmaHandle, APartStaysInside) {
  const RemoteBuffer whole = buffer_of(card_of({"tcp"}));
  EXPECT_TRUE(whole.slice(1000, 0).has_value());
  EXPECT_EQ(whole.slice(1001, 0).error().code(), Code::kInvalid);
  EXPECT_EQ(whole.slice(1, 1000).error().code(), Code::kInvalid);
  EXPECT_EQ(whole.slice(~0ull, 2).error().code(), Code::kInvalid);
  const RemoteBuffer lies(core_of(whole), 999, 2);
  EXPECT_EQ(RemoteBuffer::decode(lies.encode()).error().code(), Code::kCorrupt);
}

TEST(RdmaHandle, AnEmptyHandleIsEmpty) {
  const RemoteBuffer none;
  EXPECT_FALSE(none.valid());
  EXPECT_EQ(none.size(), 0u);
  EXPECT_TRUE(none.contexts().empty());
  EXPECT_TRUE(none.encode().empty());
  EXPECT_EQ(none.slice(0, 0).error().code(), Code::kInvalid);
}

}  // namespace
}  // namespace hawser::rdma
