// What is told of queue pairs, beside what the kernel says of them. Run in the virtual machine of tools/rdma-vm.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hawser/hawser.h>
#include <hawser/rdma.h>

namespace hawser::rdma {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

struct End {
  End(const std::string& name, const std::string& device) {
    AgentOptions options;
    options.name = name;
    options.backends = {hawser::verbs({{"devices", device}})};
    options.log.level = LogLevel::kError;
    agent = Agent::open(std::move(options)).value();
    backend.emplace(Backend::open(agent).value());
    memory = backend->local_memory(bytes).value();
  }

  std::vector<std::byte> bytes = std::vector<std::byte>(65536);
  Agent agent;
  std::optional<Backend> backend;
  LocalMemory memory;
};

std::string kernel_says() {
  if (std::system("rdma resource show qp >/tmp/rdma_qps") != 0) return {};
  std::ifstream in("/tmp/rdma_qps");
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(QueuePairs, TellWhatTheKernelKnows) {
  if (!std::filesystem::exists("/sys/class/infiniband/rxe0")) GTEST_SKIP() << "needs the devices rxe0 and rxe1";
  End user("user", "rxe0"), owner("owner", "rxe1");
  const RemoteBuffer buffer =
      RemoteBuffer::decode(owner.backend->request_buffer(1, owner.memory).value().encode()).value();
  EXPECT_EQ(user.backend->queue_pair_info(buffer).error().code(), Code::kDisconnected) << "nothing connects for it";
  const Batch batch =
      user.backend->submit({{.type = OpType::kReadIntoLocal, .local = user.memory, .remote = buffer}}, 20s).value();
  ASSERT_TRUE(batch.wait(30s).ok()) << batch.status().to_string();

  const TransportInfo transport = user.backend->transport_info(buffer).value();
  EXPECT_EQ(transport.backend, "verbs");
  EXPECT_EQ(transport.level, TransportLevel::kNic);
  ASSERT_EQ(transport.queue_pairs.size(), 1u);
  const QueuePairCounters& pair = transport.queue_pairs[0];
  EXPECT_EQ(pair.state, "ready");
  EXPECT_EQ(pair.device, "rxe0");
  EXPECT_EQ(pair.port, 1u);
  EXPECT_EQ(pair.gid, "10.77.0.1");
  EXPECT_EQ(pair.peer_gid, "10.77.0.2");
  EXPECT_EQ(pair.mtu_bytes, 4096u);
  EXPECT_EQ(pair.flow.bytes_in, 65536u);
  EXPECT_EQ(pair.flow.operations, 1u);
  const std::string kernel = kernel_says();
  EXPECT_THAT(kernel, HasSubstr("link rxe0/1 lqpn " + std::to_string(pair.number) + " rqpn " +
                                std::to_string(pair.peer_number)));
  EXPECT_THAT(kernel, HasSubstr("link rxe1/1 lqpn " + std::to_string(pair.peer_number)));

  const QueuePairInfo info = user.backend->queue_pair_info(*buffer.slice(100, 8), *user.memory.slice(64, 8)).value();
  EXPECT_EQ(info.state.number, pair.number);
  EXPECT_NE(info.local_key, 0u);
  EXPECT_NE(info.remote_key, 0u);
  EXPECT_EQ(info.local_address, reinterpret_cast<std::uintptr_t>(user.bytes.data() + 64));
  EXPECT_EQ(info.remote_address, reinterpret_cast<std::uintptr_t>(owner.bytes.data() + 100));
  EXPECT_EQ(info.doorbell, nullptr) << "Soft-RoCE does not tell";

  const AgentCounters counters = user.agent.counters();
  ASSERT_EQ(counters.devices.size(), 1u);
  EXPECT_EQ(counters.devices[0].device, "rxe0");
  EXPECT_EQ(counters.devices[0].queue_pairs_gauge, 1u);
  EXPECT_EQ(counters.devices[0].flow.bytes_in, 65536u);
  EXPECT_THAT(to_json(counters), HasSubstr("\"receiver_not_ready\":0"));
}

}  // namespace
}  // namespace hawser::rdma
