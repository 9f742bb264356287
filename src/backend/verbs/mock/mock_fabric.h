#pragma once

// A fabric of RDMA devices in memory, for tests: reliable connections between queue pairs of one process, with the
// checks that an adapter makes (states, keys, rights, bounds, receives), and every failure that no device here can be
// made to show.
//
// Thread rule: one thread. Lifetime: the fabric outlives its MockVerbs, and those all that was made with them.

#include <cerrno>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "backend/verbs/devices/gid.h"
#include "backend/verbs/library/verbs.h"
#include "base/fd.h"
#include "base/rng.h"

namespace hawser::backend::verbs {

struct MockQp;
struct MockCq;

/// Whom a request of a queue pair of datagrams is for.
struct MockDatagram {
  ibv_ah* address = nullptr;
  std::uint32_t number = 0, qkey = 0;
};

/// How many objects exist; all zero when nothing leaked.
struct MockCounts {
  int contexts = 0, pds = 0, mrs = 0, channels = 0, cqs = 0, qps = 0, ahs = 0;
  bool operator==(const MockCounts&) const = default;
};

/// A port of an adapter beside its first.
struct MockPort {
  bool active = true;
  std::uint16_t lid = 0;
  std::uint64_t mbit_per_s = 100'000;
  std::vector<Gid> gids = {};  ///< Empty: fe80::x and 10.0.p.x, where p is the port's number less one.
};

/// One adapter; with one port, unless there are more.
struct MockDevice : MockPort {
  std::string name;
  bool ethernet = true;
  std::vector<MockPort> more = {};  ///< Its ports 2, 3, ...
  std::uint8_t last_byte = 1;       ///< Of its IPv4-mapped GIDs 10.0.p.x.
  bool gone = false;                ///< Pulled out: every call on it fails, and it answers nobody.

  MockPort& port(std::uint8_t number) { return number == 1 ? *this : more.at(number - 2u); }
  const MockPort& port(std::uint8_t number) const { return number == 1 ? *this : more.at(number - 2u); }
  /// The table of a port, entries in use by index.
  std::vector<Gid> gids_of(std::uint8_t number) const;
  bool has_gid(std::uint8_t number, std::span<const std::uint8_t, 16> bytes) const;
  ibv_mtu mtu = IBV_MTU_4096;
  int max_qp_wr = 1024, max_sge = 8, max_sge_rd = 8, max_cqe = 1 << 16, max_qp_rd_atom = 16, max_qp_init_rd_atom = 16;
  std::uint32_t max_msg_sz = 1u << 30;
  bool efa = false;  ///< It has datagrams (SRD) and no reliable connections.
  std::string host;  ///< EFA: what goes to a device of the same host is dropped; empty: a host of its own.
  std::uint32_t efa_caps = 0xf, efa_depth = 256, efa_sge = 1, efa_rdma_size = 1u << 20;
  ibv_device device{};
};

class MockFabric {
 public:
  explicit MockFabric(std::vector<std::string> devices = {"mock0"});
  ~MockFabric();

  MockDevice& device(const std::string& name);
  const MockDevice& device(const std::string& name) const;
  MockCounts counts;

  /// The `nth` next call of this name (1: the next) fails with `error`; from then on it works again.
  void fail(const std::string& call, int error, int nth = 1) { failures_[call] = {error, nth}; }
  /// All calls of this name fail until `fail_no_more`.
  void fail_always(const std::string& call, int error) { failures_[call] = {error, -1}; }
  void fail_no_more() { failures_.clear(); }
  /// True, with errno set, if this call has to fail.
  bool fails(const std::string& call);

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
  /// Something between the devices drops packets of more bytes than this, without a word. Devices drop those that are
  /// larger than they can be on their link (MockDevice::mtu) in the same way.
  std::uint32_t packet_max = 4096;
  /// Addresses that lead nowhere: a VLAN or a firewall. As GidBytes.
  std::set<GidBytes> dead_gids;
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
  /// "mock0" is port 1 of it, "mock0:2" port 2.
  static std::string port_name(const std::string& device, std::uint8_t number);
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
  std::uint64_t bytes_pinned = 0;             ///< Of all registrations that exist.
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
  /// Indirect keys, as mlx5 has them: counted from 0 at the first piece's begin. 0: told to fail.
  std::uint32_t make_list_key();
  void end_list_key(std::uint32_t key);
  int bind_list(ibv_qp* qp, std::uint32_t key, int access, std::span<const ibv_sge> list, std::uint64_t wr_id);

  // For MockVerbs.
  ibv_mr* make_mr(ibv_pd* pd, void* address, std::size_t size, int access);
  void run(MockQp& qp, const ibv_send_wr& request, const MockDatagram& datagram = {});
  int post_datagrams(MockQp& qp);
  MockQp* make_qp(ibv_pd* pd, const ibv_qp_init_attr& attr, const MockDevice& device);
  void flush(MockQp& qp);
  std::map<std::uint32_t, MockQp*> qps_;
  std::map<std::uint32_t, ibv_mr*> mrs_;
  std::map<std::uint32_t, int> mr_access_;
  std::set<MockCq*> cqs_;
  std::set<const ibv_context*> removed_;
  std::set<ibv_pd*> pds_;
  std::vector<ibv_mr*> ended_mrs_;  ///< Of devices that were removed.
  /// What is left of one that was removed, and could not be given back.
  void purge(const ibv_context* context);
  std::vector<std::unique_ptr<MockDevice>> devices_;
  std::uint32_t next_number_ = 100, next_key_ = 1000;
  std::multimap<std::string, ibv_context*> contexts_;
  std::map<ibv_context*, std::deque<ibv_async_event>> events_;

 private:
  struct Failure {
    int error = 0;
    int nth = 0;
  };
  struct Held {
    std::uint32_t qp = 0;
    std::uint8_t to_gid = 0;  ///< Datagrams: the last byte of the peer's GID,
    std::uint32_t to = 0;     ///< its queue pair; of others the one that is connected,
    std::uint32_t qkey = 0;   ///< and its key; 0: no datagram.
    std::uint64_t wr_id = 0;
    ibv_wr_opcode opcode = IBV_WR_RDMA_WRITE;
    unsigned flags = 0;
    std::uint32_t imm = 0;
    std::vector<ibv_sge> list;
    std::vector<std::byte> inlined;
    std::uint64_t remote = 0, compare = 0, swap = 0;
    std::uint32_t rkey = 0;
  };
  void deliver(Held held);
  ibv_wc_status perform(MockQp& qp, Held& held);
  using Runs = std::vector<std::span<std::byte>>;
  /// The bytes that a key means for a protection domain; nothing: no such key, right or range.
  std::optional<Runs> resolve(ibv_pd* pd, std::uint32_t key, std::uint64_t at, std::uint64_t size, int right);
  static ibv_wc_status atomic(const Held& held, const Runs& here, const Runs& there);
  ibv_wc_status move(MockQp& qp, Held& held, MockQp& peer);
  ibv_wc_status receive(MockQp& peer, const Held& held, std::span<const std::byte> bytes);
  bool linked(const MockQp& qp) const;
  bool is_down(const MockQp& qp) const;
  bool is_addressed(const MockQp& qp, const MockQp& peer) const;
  bool is_too_large(const MockQp& qp, const Held& held) const;
  enum class Way : std::uint8_t { kOpen, kLost, kDropped };
  Way way_of(const MockQp& qp, const Held& held) const;
  std::size_t next_held();
  void finish(MockQp& qp, const Held& held, ibv_wc_status status);
  void complete(MockCq& cq, const ibv_wc& wc);

  std::map<std::string, Failure> failures_;
  std::map<std::uint32_t, std::vector<ibv_sge>> lists_;
  std::deque<Held> held_;  ///< In hold mode.
  std::deque<Held> lost_;  ///< Waiting for `expire`.
  std::deque<Held> gone_;  ///< Datagrams that were dropped: nobody answers.
  std::set<std::string> down_;
  ibv_wc_status planted_status(const Held& held);
  ibv_wc_status next_status_ = IBV_WC_SUCCESS, bytes_status_ = IBV_WC_SUCCESS;
};

/// One process's view of the fabric: what it calls of libibverbs (mock_verbs.cc; for EFA mock_efa.cc).
class MockVerbs : public Verbs {
 public:
  explicit MockVerbs(MockFabric& fabric) : fabric_(fabric) {}
  std::string describe() const override { return "mock"; }

  ibv_device** get_device_list(int* count) override;
  void free_device_list(ibv_device** list) override { delete[] list; }
  ibv_context* open_device(ibv_device* device) override;
  int close_device(ibv_context* context) override;
  int query_device(ibv_context* context, ibv_device_attr* attr) override;
  int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* attr) override;
  int query_gid(ibv_context* context, std::uint8_t port, int index, ibv_gid* gid) override;
  std::ptrdiff_t query_gid_table(ibv_context* context, ibv_gid_entry* entries, std::size_t count) override;
  int get_async_event(ibv_context* context, ibv_async_event* event) override;

  ibv_pd* alloc_pd(ibv_context* context) override;
  int dealloc_pd(ibv_pd* pd) override;
  ibv_mr* reg_mr(ibv_pd* pd, void* address, std::size_t size, int access) override;
  ibv_mr* reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t size, std::uint64_t iova, int fd,
                        int access) override;
  int dereg_mr(ibv_mr* mr) override;

  ibv_comp_channel* create_comp_channel(ibv_context* context) override;
  int destroy_comp_channel(ibv_comp_channel* channel) override;
  ibv_cq* create_cq(ibv_context* context, int entries, void* owner, ibv_comp_channel* channel, int vector) override;
  int destroy_cq(ibv_cq* cq) override;
  int req_notify_cq(ibv_cq* cq, int solicited_only) override;
  int get_cq_event(ibv_comp_channel* channel, ibv_cq** cq) override;
  int poll_cq(ibv_cq* cq, int count, ibv_wc* out) override;

  ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) override;
  int modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask) override;
  int query_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init) override;
  int destroy_qp(ibv_qp* qp) override;
  int raw_queue(ibv_qp* qp, RawQueue* out) override;
  std::string no_efa() override { return fabric_.fails("no_efa") ? "libefa cannot be opened" : ""; }
  int query_efa(ibv_context* context, efadv_device_attr* attr) override;
  ibv_qp* create_srd(ibv_context* context, ibv_qp_init_attr_ex* attr) override;
  ibv_qp_ex* extended(ibv_qp* qp) override;
  ibv_ah* create_ah(ibv_pd* pd, ibv_ah_attr* attr) override;
  int destroy_ah(ibv_ah* ah) override;
  int post_send(ibv_qp* qp, ibv_send_wr* first, ibv_send_wr** bad) override;
  int post_recv(ibv_qp* qp, ibv_recv_wr* first, ibv_recv_wr** bad) override;

 private:
  int refused(const char* call) { return fabric_.fails(call) ? errno : 0; }
  /// True, with errno set: the call fails, or the device was removed.
  bool fails(const char* call, const ibv_context* context) {
    if (fabric_.fails(call)) return true;
    if (!fabric_.is_removed(context)) return false;
    errno = EIO;
    return true;
  }

  MockFabric& fabric_;
};

}  // namespace hawser::backend::verbs
