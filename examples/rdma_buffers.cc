// Remote buffers: one agent lends memory, another reads and writes it, counts in it, and takes it away. Here both are
// in one process; the handle would travel to another by any means.

#include <hawser/rdma.h>

#include <cstdio>
#include <cstring>

using namespace std::chrono_literals;
using hawser::rdma::OpType;

int main() {
  hawser::Agent owner = hawser::Agent::open({.name = "owner"}).value();
  hawser::Agent user = hawser::Agent::open({.name = "user"}).value();
  {
    auto lending = hawser::rdma::Backend::open(owner).value();  // Its thread runs the agent, too.
    auto using_it = hawser::rdma::Backend::open(user).value();

    alignas(8) std::byte weights[4096] = {};
    std::memcpy(weights, "weights of step 1", 18);
    const auto lent = lending.request_buffer(1, lending.local_memory(weights).value()).value();
    const std::string handle = lent.encode();

    const auto remote = hawser::rdma::RemoteBuffer::decode(handle).value();
    std::byte mine[4096] = {};
    const auto memory = using_it.local_memory(mine).value();
    const auto read =
        using_it.submit({{.type = OpType::kReadIntoLocal, .local = memory, .remote = remote}}, 5s).value();
    if (hawser::Status status = read.wait(); !status.ok()) return std::puts(status.to_string().c_str()), 1;
    std::printf("read by %s: %s\n", using_it.transport_info(remote)->backend.c_str(), reinterpret_cast<char*>(mine));

    // A batch: part of the buffer is written, and a counter at its end is raised.
    std::memcpy(mine, "weights of step 2", 18);
    const auto batch = using_it
                           .submit({{.type = OpType::kWriteFromLocal,
                                     .local = memory.slice(0, 18).value(),
                                     .remote = remote.slice(0, 18).value(),
                                     .notify = "step 2"},
                                    {.type = OpType::kFetchAdd, .remote = remote.slice(4088, 8).value(), .value = 1}},
                                   5s)
                           .value();
    if (!batch.wait().ok()) return 1;
    std::printf("the owner has: %s, counted from %llu\n", reinterpret_cast<char*>(weights),
                static_cast<unsigned long long>(batch.outcomes()[1].previous));

    if (!using_it.release(remote, 5s)->wait().ok()) return 1;
    const auto late =
        using_it.submit({{.type = OpType::kReadIntoLocal, .local = memory, .remote = remote}}, 5s).value();
    std::printf("after the release: %s\n", late.wait().to_string().c_str());
    if (late.status().ok()) return 1;
  }
  return owner.close(5s).ok() && user.close(5s).ok() ? 0 : 1;
}
