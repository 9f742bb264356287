#pragma once

// A fabric of RDMA devices in memory, for tests: reliable connections between queue pairs of one process, with the
// checks that an adapter makes (states, keys, rights, bounds, receives), and every failure that no device here can be
// made to show. It keeps devices, objects and what is under way; MockMemory knows what keys mean, MockWires who reaches
// whom, mock_request.h what a request does.
//
// Thread rule: one thread. Lifetime: the fabric outlives its MockVerbs, and those all that was made with them.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "backend/verbs/library/verbs.h"
#include "backend/verbs/mock/mock_device.h"
#include "backend/verbs/mock/mock_memory.h"
#include "backend/verbs/mock/mock_objects.h"
#include "backend/verbs/mock/mock_request.h"
#include "backend/verbs/mock/mock_wires.h"
#include "backend/verbs/mock/planned_failures.h"
#include "base/rng.h"

namespace hawser::backend::verbs {

/// How many objects exist; all zero when nothing leaked.
struct MockCounts {
  int contexts = 0, pds = 0, mrs = 0, channels = 0, cqs = 0, qps = 0, ahs = 0;
  bool operator==(const MockCounts&) const = default;
};

class MockFabric {
 public:
  explicit MockFabric(std::vector<std::string> devices = {"mock0"});
  ~MockFabric();

  MockDevice& device(const std::string& name);
  const MockDevice& device(const std::string& name) const;
  MockCounts counts;

  /// By name of the call.
  void fail(const std::string& call, int error, int nth = 1) { failures_.fail(call, error, nth); }
  void fail_always(const std::string& call, int error) { failures_.fail_always(call, error); }
  void fail_no_more() { failures_.clear(); }
  bool fails(const std::string& call) { return failures_.fails(call); }

  /// Queue pairs tell where they lie, as mlx5's do; the addresses are made up.
  bool tells_queues = false;
  /// Work requests are kept until `deliver`.
  bool hold = false;
  std::size_t deliver(std::size_t count = SIZE_MAX);
  /// The next one of this queue pair, before those of others. False: none is held.
  bool deliver_one_of(std::uint32_t number);
  std::size_t held() const { return held_.size(); }
  /// The next request that is delivered ends so.
  void fail_next_with(ibv_wc_status status) { next_status_ = status; }
  /// Each write and read of some bytes ends so, until told otherwise. The proof of a queue pair has none.
  void fail_bytes_with(ibv_wc_status status) { bytes_status_ = status; }
  /// What lies between the devices.
  MockWires wires;
  /// Packets of and to this port ("mock0", "mock0:2") are lost: what is posted ends in "retries exceeded" at the next
  /// `expire`.
  void set_link(const std::string& port, bool up);
  /// Time-outs of what waits for a link.
  std::size_t expire();
  /// An asynchronous event for every context of the device, about this port.
  void raise(const std::string& device, ibv_event_type type, std::uint8_t port = 1);
  /// The queue tells no completion any more, and its device says so.
  void fail_cq(MockCq& cq);
  /// The device is pulled out, or put in again, with its objects as they were.
  void set_gone(const std::string& device, bool gone);
  /// The device is removed as the kernel does it: what was made on it has ended, and every call about that
  /// fails, those that end it, too. Put back, it can be opened anew.
  void remove(const std::string& device);
  void put_back(const std::string& name) { device(name).gone = false; }
  bool is_removed(const ibv_context* context) const { return removed_.contains(context); }
  /// The queue pair goes to the error state, as by a fault of the adapter.
  void break_qp(std::uint32_t number);
  /// Completions of this queue are lost from now on.
  void overrun_all_cqs();
  std::size_t qps() const { return qps_.size(); }
  std::vector<std::uint32_t> qp_numbers() const;
  ibv_qp* qp_of_number(std::uint32_t number) const;
  /// What it was connected with so far.
  ibv_qp_attr attributes(std::uint32_t number) const;
  ibv_qp_init_attr made_with(std::uint32_t number) const;
  std::string device_of(std::uint32_t number) const;
  int under_way(std::uint32_t number) const;  ///< Work requests posted and not ended.
  std::uint64_t posts = 0, requests = 0;      ///< Calls of post_send, and work requests in them,
  std::uint64_t immediates = 0;               ///< and those with immediate.
  std::uint64_t largest_request = 0;          ///< Bytes of one.
  std::uint64_t qps_made = 0;                 ///< Those that are gone, too.
  /// Datagrams are done, and end, in this order of chance.
  base::Rng order{1};
  std::uint64_t dropped = 0;  ///< Datagrams: to a wrong key, or to the own host.
  std::uint64_t aborts = 0;   ///< Sessions of the extended builder that were given up.
  void set_qkey(std::uint32_t number, std::uint32_t qkey);
  /// The address handle of the last datagram of this queue pair.
  ibv_ah_attr address_used(std::uint32_t number) const;
  /// Acknowledgements are lost: what a queue pair posts is done at the peer, and never ends here.
  bool mute = false;

  // GPU memory: addresses of this process that a plain registration refuses, as the kernel would, and no CPU reads.
  std::function<bool(std::uintptr_t)> is_gpu_memory = [](std::uintptr_t) { return false; };
  bool dmabufs = true;       ///< The devices register dmabufs.
  bool peer_memory = false;  ///< The kernel has a peer-memory module.
  int dmabufs_registered = 0;
  std::uint64_t gpu_bytes_inlined = 0;
  /// Registrations and keys.
  MockMemory memory;
  /// An indirect key; 0: told to fail.
  std::uint32_t make_list_key();
  void end_list_key(std::uint32_t key);
  int bind_list(ibv_qp* qp, std::uint32_t key, int access, std::span<const ibv_sge> list, std::uint64_t wr_id);

  // For MockVerbs.
  ibv_mr* make_mr(ibv_pd* pd, void* address, std::size_t size, int access);
  void end_mr(ibv_mr* mr);
  void run(MockQp& qp, const ibv_send_wr& request, const MockDatagram& datagram = {});
  int post_datagrams(MockQp& qp);
  MockQp* make_qp(ibv_pd* pd, const ibv_qp_init_attr& attr, const MockDevice& device);
  void flush(MockQp& qp);
  std::map<std::uint32_t, MockQp*> qps_;
  std::set<MockCq*> cqs_;
  std::set<const ibv_context*> removed_;
  std::set<ibv_pd*> pds_;
  /// What is left of one that was removed, and could not be given back.
  void purge(const ibv_context* context);
  std::vector<std::unique_ptr<MockDevice>> devices_;
  std::multimap<std::string, ibv_context*> contexts_;
  std::map<ibv_context*, std::deque<ibv_async_event>> events_;

 private:
  void count_memory() { counts.mrs = static_cast<int>(memory.count()); }
  void deliver(MockRequest request);
  MockWires::Way way_of(const MockQp& qp, const MockRequest& request) const;
  ibv_wc_status planted_status(const MockRequest& request);
  ibv_wc_status perform(MockQp& qp, MockRequest& request);
  std::size_t next_held();
  void finish(MockQp& qp, const MockRequest& request, ibv_wc_status status);

  PlannedFailures failures_;
  std::uint32_t next_number_ = 100;
  std::deque<MockRequest> held_;  ///< In hold mode.
  std::deque<MockRequest> lost_;  ///< Waiting for `expire`.
  std::deque<MockRequest> gone_;  ///< Datagrams that were dropped: nobody answers.
  ibv_wc_status next_status_ = IBV_WC_SUCCESS, bytes_status_ = IBV_WC_SUCCESS;
};

}  // namespace hawser::backend::verbs
