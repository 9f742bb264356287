// World::split gives one to ranks without a color; others were moved away from.

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <vector>

#include <hawser/world.h>

namespace hawser {
namespace {

using namespace std::chrono_literals;

TEST(EmptyWorld, RefusesAllCalls) {
  World world;
  std::byte byte{};
  const std::array<std::uint64_t, 1> counts{1};
  EXPECT_FALSE(world.valid());
  EXPECT_EQ(world.size(), 0u);
  EXPECT_EQ(world.rank(), 0u);
  EXPECT_EQ(world.cost_model(), "");
  EXPECT_TRUE(world.failed().empty());
  EXPECT_FALSE(world.probe(0, std::nullopt));
  EXPECT_FALSE(world.has_direct_peer(0));
  EXPECT_FALSE(world.peer(0).valid());
  world.revoke(Status());
  std::vector<Status> all{
      world.barrier(),
      world.send({&byte, 1}, 0, 0),
      world.receive({&byte, 1}, 0, 0).error(),
      world.broadcast(&byte, 1, DataType::kUInt8, 0),
      world.all_reduce(&byte, &byte, 1, DataType::kUInt8, ReduceOp::kSum),
      world.all_gather(&byte, &byte, counts, DataType::kUInt8),
      world.call(0, "name", {}).error(),
      world.register_handler("name", [](const IncomingCall&) -> Result<CallAnswer> { return CallAnswer{}; }),
      world.allocate({.size = 8}).error(),
      world.add_region({}).error(),
      world.split(0).error(),
      world.duplicate().error(),
      world.group({}).error(),
      world.agree(true).error(),
      world.shrink().error(),
      world.recovered().error(),
      world.close(1ms),
      world.shutdown(1ms),
      world.leave(1ms)};
  std::vector<Request> requests;
  requests.push_back(world.ibarrier());
  requests.push_back(world.isend({&byte, 1}, 0, 0));
  requests.push_back(world.ireceive_any_size(0, 0));
  requests.push_back(world.icall(0, "name", {}));
  requests.push_back(world.iagree(true));
  for (Request& request : requests) {
    EXPECT_TRUE(request.done());
    all.push_back(request.wait(1ms));
    all.push_back(request.status());
    request.cancel();
  }
  for (const Status& status : all) EXPECT_EQ(status.code(), Code::kInvalid) << status.to_string();
}

}  // namespace
}  // namespace hawser
