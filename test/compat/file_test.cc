// NIXL's plugin POSIX: files as memory of the agent, by descriptor and by path.

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include "agents.h"
#include "base/fd.h"
#include "base/inside.h"
#include "base/test_folder.h"
#include "compat/core.h"
#include "compat/request.h"

namespace hawser::compat {
namespace {

constexpr std::size_t kBytes = 64 * 1024;

class CompatFile : public ::testing::Test {
 protected:
  void SetUp() override {
    posix_ = agent_.create_backend("posix").value();
    RegDescList list(MemType::kDram);
    list.add(address(), memory_.size());
    memory_registration_ = agent_.register_memory(list).value();
  }

  std::uint64_t address() const { return reinterpret_cast<std::uintptr_t>(memory_.data()); }
  std::string path(std::string_view name) const { return folder_.path(name); }
  base::Fd make(std::string_view name) const {
    return base::Fd(::open(path(name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  }
  OptArgs by_posix() const { return {.backends = {posix_}}; }
  static RegDescList one_file(std::uint64_t addr, std::uint64_t len, std::uint64_t dev, std::string meta = {}) {
    RegDescList list(MemType::kFile);
    list.add(RegDesc(addr, len, dev, std::move(meta)));
    return list;
  }
  /// Between all of the memory and `dev` from `offset` on, the agent as its own peer.
  Status move(XferOp op, std::uint64_t offset, std::uint64_t dev) {
    XferDescList ours(MemType::kDram), file(MemType::kFile);
    ours.add(address(), memory_.size());
    file.add(offset, memory_.size(), dev);
    Result<TransferRequest> request = agent_.create_xfer_req(op, ours, file, "files");
    if (!request) return request.error();
    EXPECT_EQ(agent_.query_xfer_backend(*request)->name(), "POSIX");
    Result<bool> busy = agent_.post_xfer_req(*request);
    EXPECT_TRUE(eventually([&] {
      if (busy && *busy) busy = agent_.in_progress(*request);
      return !busy || !*busy;
    }));
    return busy ? Status() : busy.error();
  }

  const base::TestFolder folder_{"hawser-posix"};
  std::vector<char> memory_ = std::vector<char>(kBytes, 'a');
  Agent agent_ = Agent::open("files", quiet()).value();
  Backend posix_;
  RegistrationHandle memory_registration_;
};

TEST_F(CompatFile, BytesGoToADescriptorAndBack) {
  const base::Fd fd = make("data");
  const auto dev = static_cast<std::uint64_t>(fd.get());
  const auto file = agent_.register_memory(one_file(4096, kBytes, dev));
  ASSERT_TRUE(file) << file.error().to_string();
  const Status written = move(XferOp::kWrite, 4096, dev);
  ASSERT_TRUE(written.ok()) << written.to_string();
  EXPECT_EQ(std::filesystem::file_size(path("data")), 4096 + kBytes);
  std::fill(memory_.begin(), memory_.end(), 'b');
  ASSERT_TRUE(move(XferOp::kRead, 4096, dev).ok());
  EXPECT_EQ(memory_, std::vector<char>(kBytes, 'a'));
  EXPECT_EQ(code_of(move(XferOp::kRead, 0, dev)), NixlCode::kNotFound) << "before what is registered";
}

/// What the backend file of an agent runs with.
Params file_params(const Agent& agent) {
  for (const BackendReport& report : core_of(agent)->agent().backends()) {
    if (report.name == "file") return report.params;
  }
  return {};
}

TEST(CompatFileParams, ChooseTheEngineAndTheDepth) {
  Agent threads = Agent::open("threads", quiet()).value();
  ASSERT_TRUE(threads.create_backend("POSIX", {{"use_aio", "true"}, {"kernel_queue_size", "64"}}));
  EXPECT_EQ(file_params(threads)["engine"], "threads");
  EXPECT_EQ(file_params(threads)["depth"], "64");
  // Hawser's own configuration goes first.
  Agent set = Agent::open("set", quiet({{"HAWSER_BACKEND_FILE_DEPTH", "32"}})).value();
  ASSERT_TRUE(set.create_backend("POSIX", {{"use_aio", "true"}, {"kernel_queue_size", "64"}}));
  EXPECT_EQ(file_params(set)["engine"], "threads");
  EXPECT_EQ(file_params(set)["depth"], "32");
  const auto refused = set.create_backend("POSIX", {{"use_aio", "true"}});
  EXPECT_EQ(code_of(refused.error()), NixlCode::kInvalidParam) << "there is one already";
  Agent wrong = Agent::open("wrong", quiet()).value();
  EXPECT_EQ(code_of(wrong.create_backend("POSIX", {{"use_uring", "maybe"}}).error()), NixlCode::kInvalidParam);
  EXPECT_TRUE(wrong.create_backend("POSIX")) << "the refused call left something behind";
}

TEST_F(CompatFile, LengthZeroReachesAsFarAsAFileCan) {
  const base::Fd fd = make("data");
  const auto dev = static_cast<std::uint64_t>(fd.get());
  const RegDescList list = one_file(0, 0, dev);
  auto file = agent_.register_memory(list);
  ASSERT_TRUE(file) << file.error().to_string();
  ASSERT_TRUE(move(XferOp::kWrite, 10 * kBytes, dev).ok());
  EXPECT_EQ(std::filesystem::file_size(path("data")), 11 * kBytes);
  EXPECT_TRUE(file->deregister().ok());
  EXPECT_EQ(code_of(agent_.deregister_memory(list)), NixlCode::kNotFound);
}

TEST_F(CompatFile, APathIsOpenedAsItsMetaSays) {
  const std::string made = path("made");
  const auto absent = agent_.register_memory(one_file(0, kBytes, 1, "rw:" + made));
  ASSERT_FALSE(absent);
  EXPECT_NE(absent.error().to_string().find(made), std::string::npos) << absent.error().to_string();
  const auto file = agent_.register_memory(one_file(0, kBytes, 1, "rw,create:" + made));
  ASSERT_TRUE(file) << file.error().to_string();
  ASSERT_TRUE(move(XferOp::kWrite, 0, 1).ok());
  EXPECT_EQ(std::filesystem::file_size(made), kBytes);
  EXPECT_EQ(code_of(agent_.register_memory(one_file(0, 0, 1, "rw,create:" + path("other"))).error()),
            NixlCode::kInvalidParam)
      << "one device, two files";
  const auto reads_only = agent_.register_memory(one_file(0, kBytes, 2, "ro:" + made));
  ASSERT_TRUE(reads_only) << reads_only.error().to_string();
  EXPECT_TRUE(move(XferOp::kRead, 0, 2).ok());
  EXPECT_FALSE(move(XferOp::kWrite, 0, 2).ok());
}

// The device number is the client's own then, and may be any file's descriptor by chance.
TEST_F(CompatFile, EachWordOfNixlsMakesItAPath) {
  const base::Fd other = make("other");
  const auto dev = static_cast<std::uint64_t>(other.get());
  std::uint64_t syncs = 0;
  for (const std::string words : {"rw,sync,create", "rw,create,noatime", "rw,create,sync,noatime"}) {
    SCOPED_TRACE(words);
    const std::string made = path(words);
    auto file = agent_.register_memory(one_file(0, kBytes, dev, words + ":" + made));
    ASSERT_TRUE(file) << file.error().to_string();
    XferDescList ours(MemType::kDram), theirs(MemType::kFile);
    ours.add(address(), kBytes);
    theirs.add(0, kBytes, dev);
    for (const XferOp op : {XferOp::kWrite, XferOp::kRead}) {
      auto request = agent_.create_xfer_req(op, ours, theirs, "files").value();
      syncs += core_of(request)->is_durable ? 1 : 0;
    }
    EXPECT_TRUE(move(XferOp::kWrite, 0, dev).ok());
    EXPECT_EQ(std::filesystem::file_size(made), kBytes);
    EXPECT_TRUE(file->deregister().ok());
  }
  EXPECT_EQ(syncs, 2u) << "what is written with \"sync\"";
  EXPECT_EQ(std::filesystem::file_size(path("other")), 0u);
}

TEST_F(CompatFile, WrongDescriptorsAreRefused) {
  EXPECT_FALSE(agent_.register_memory(one_file(0, kBytes, 1'000'000)));
  EXPECT_EQ(code_of(agent_.register_memory(one_file(0, kBytes, ~0ull)).error()), NixlCode::kInvalidParam);
  EXPECT_EQ(code_of(agent_.register_memory(one_file(~0ull - 10, 100, 0)).error()), NixlCode::kInvalidParam);
  const base::Fd fd = make("short");
  const auto dev = static_cast<std::uint64_t>(fd.get());
  const auto file = agent_.register_memory(one_file(0, kBytes, dev));
  ASSERT_TRUE(file);
  const Status short_read = move(XferOp::kRead, 0, dev);
  EXPECT_NE(short_read.to_string().find("ends at or before"), std::string::npos) << short_read.to_string();
}

// A device number stands for one file as long as anything of it is registered: where a transfer goes is never a guess.
TEST_F(CompatFile, ADeviceStandsForOneFileWhicheverWayItWasNamed) {
  const base::Fd fd = make("second");
  const auto dev = static_cast<std::uint64_t>(fd.get());
  auto first = agent_.register_memory(one_file(0, 0, dev, "rw,create:" + path("first")));
  ASSERT_TRUE(first) << first.error().to_string();
  const auto refused = agent_.register_memory(one_file(4096, kBytes, dev));
  ASSERT_FALSE(refused) << "descriptor " << dev << " is another file than device " << dev;
  EXPECT_EQ(code_of(refused.error()), NixlCode::kInvalidParam);
  EXPECT_NE(refused.error().to_string().find("another file"), std::string::npos) << refused.error().to_string();
  ASSERT_TRUE(move(XferOp::kWrite, 4096, dev).ok());
  EXPECT_EQ(std::filesystem::file_size(path("first")), 4096 + kBytes);
  EXPECT_EQ(std::filesystem::file_size(path("second")), 0u);
  // What is refused makes no file.
  EXPECT_FALSE(agent_.register_memory(one_file(0, 0, dev, "rw,create:" + path("third"))));
  EXPECT_FALSE(std::filesystem::exists(path("third")));
  // The same file again, by its path or by a descriptor, is no other one.
  const auto again = agent_.register_memory(one_file(0, kBytes, dev, "rw:" + path("first")));
  EXPECT_TRUE(again) << again.error().to_string();
  ASSERT_TRUE(first->deregister().ok());
}

TEST_F(CompatFile, ADescriptorThatIsAnotherFileByNowIsRefusedUntilTheFirstOneIsDeregistered) {
  base::Fd fd = make("old");
  const int number = fd.get();
  const auto dev = static_cast<std::uint64_t>(number);
  auto old = agent_.register_memory(one_file(kBytes, kBytes, dev));
  ASSERT_TRUE(old) << old.error().to_string();
  const base::Fd fresh = make("new");
  ASSERT_EQ(::dup2(fresh.get(), number), number);
  const RegDescList whole = one_file(0, 4 * kBytes, dev);
  const auto refused = agent_.register_memory(whole);
  ASSERT_FALSE(refused) << "what lies in the old range would go to the old file";
  EXPECT_EQ(code_of(refused.error()), NixlCode::kInvalidParam);
  ASSERT_TRUE(old->deregister().ok());
  const auto taken = agent_.register_memory(whole);
  ASSERT_TRUE(taken) << taken.error().to_string();
  ASSERT_TRUE(move(XferOp::kWrite, kBytes, dev).ok());
  EXPECT_EQ(std::filesystem::file_size(path("old")), 0u);
  EXPECT_EQ(std::filesystem::file_size(path("new")), 2 * kBytes);
}

TEST_F(CompatFile, OneListDoesNotNameTwoFilesAsOneDevice) {
  const base::Fd fd = make("data");
  RegDescList both = one_file(0, kBytes, static_cast<std::uint64_t>(fd.get()));
  both.add(RegDesc(kBytes, kBytes, static_cast<std::uint64_t>(fd.get()), "rw,create:" + path("other")));
  const auto refused = agent_.register_memory(both);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().to_string().find("descriptor 1"), std::string::npos) << refused.error().to_string();
  EXPECT_FALSE(std::filesystem::exists(path("other")));
  EXPECT_TRUE(agent_.register_memory(one_file(0, kBytes, static_cast<std::uint64_t>(fd.get())))) << "nothing is left";
}

TEST_F(CompatFile, QueriesTellWhatIsThere) {
  const base::Fd fd = make("data");
  ASSERT_EQ(::ftruncate(fd.get(), 1234), 0);
  RegDescList list(MemType::kFile);
  list.add(RegDesc(0, 0, 0, path("data")));
  list.add(RegDesc(0, 0, 0, path("nothing")));
  list.add(RegDesc(0, 0, 0, "rw:" + path("data")));
  const OptArgs opt = by_posix();
  const auto answers = agent_.query_mem(list, &opt);
  ASSERT_TRUE(answers) << answers.error().to_string();
  ASSERT_EQ(answers->size(), 3u);
  ASSERT_TRUE((*answers)[0] && (*answers)[2]);
  EXPECT_EQ((*answers)[0]->at("size"), "1234");
  EXPECT_TRUE((*answers)[0]->contains("mode") && (*answers)[0]->contains("mtime"));
  EXPECT_FALSE((*answers)[1]);
  EXPECT_TRUE(agent_.query_mem(RegDescList(MemType::kFile), &opt)->empty());
  EXPECT_EQ(code_of(agent_.query_mem(RegDescList(MemType::kDram), &opt).error()), NixlCode::kNotSupported);
  EXPECT_EQ(code_of(agent_.query_mem(list, nullptr).error()), NixlCode::kInvalidParam);
}

TEST_F(CompatFile, BesideUcxEachTakesWhatItCan) {
  ASSERT_TRUE(agent_.create_backend("UCX"));
  const base::Fd fd = make("data");
  const auto dev = static_cast<std::uint64_t>(fd.get());
  const auto file = agent_.register_memory(one_file(0, kBytes, dev));
  ASSERT_TRUE(file);
  EXPECT_TRUE(move(XferOp::kWrite, 0, dev).ok());
  ASSERT_TRUE(agent_.get_local_md()) << "what UCX has";
}

/// A lease on a file: who opens it, in this process, too, waits until it is let go.
class Lease {
 public:
  explicit Lease(int fd) : fd_(fd) {
    // SIGIO, which tells the holder that somebody waits, would end the process; SIGURG does nothing.
    is_held_ = ::fcntl(fd, F_SETSIG, SIGURG) == 0 && ::fcntl(fd, F_SETLEASE, F_WRLCK) == 0;
  }
  ~Lease() { let_go(); }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  bool is_held() const { return is_held_; }
  /// The kernel asks the holder to let go, as somebody opens the file.
  bool is_awaited() const { return ::fcntl(fd_, F_GETLEASE) != F_WRLCK; }
  void let_go() {
    if (std::exchange(is_held_, false)) ::fcntl(fd_, F_SETLEASE, F_UNLCK);
  }

 private:
  const int fd_;
  bool is_held_ = false;
};

// Who polls while another thread registers is not held up, however long that takes: here a file does not open.
TEST_F(CompatFile, ARegistrationThatWaitsHoldsNobodyUp) {
  Side here("here"), other("other");
  ASSERT_TRUE(here.agent.create_backend("POSIX"));
  here.knows(other);
  other.knows(here);
  const base::Fd fd = make("leased");
  Lease lease(fd.get());
  if (!lease.is_held()) GTEST_SKIP() << "no leases on files of " << folder_.path("");
  std::atomic<bool> is_registered = false;
  std::thread registering([&] {
    const auto file = here.agent.register_memory(one_file(0, kBytes, static_cast<std::uint64_t>(fd.get())));
    EXPECT_TRUE(file) << file.error().to_string();
    is_registered = true;
  });
  EXPECT_TRUE(eventually([&] { return lease.is_awaited(); }));

  const XferDescList ours = here.blocks(4), theirs = other.blocks(4);
  const auto started = std::chrono::steady_clock::now();
  for (int round = 0; round < 20; ++round) {
    OptArgs opt;
    opt.notification = std::to_string(round);
    TransferRequest request = here.agent.create_xfer_req(XferOp::kWrite, ours, theirs, "other", &opt).value();
    Result<bool> busy = here.agent.post_xfer_req(request, &opt);
    NotificationMap mine, its;
    EXPECT_TRUE(eventually([&] {
      if (busy && *busy) busy = here.agent.in_progress(request);
      return (!busy || !*busy) && other.agent.get_notifications(its).ok() && !its.empty();
    }));
    EXPECT_TRUE(busy) << busy.error().to_string();
    EXPECT_TRUE(here.agent.check_remote_metadata("other", &theirs));
    EXPECT_TRUE(here.agent.get_local_md());
    EXPECT_TRUE(here.agent.get_notifications(mine).ok());
  }
  EXPECT_FALSE(is_registered) << "it was to wait all the time";
  lease.let_go();
  registering.join();
  EXPECT_LT(std::chrono::steady_clock::now() - started, std::chrono::seconds(30)) << "it was not the lease's own end";
}

// This agent had POSIX first, which has host memory, too; but only to move it to files and back.
TEST_F(CompatFile, PosixDoesNotAnswerForMemoryOfAPeer) {
  ASSERT_TRUE(agent_.create_backend("UCX"));
  Side peer("peer", kBytes);
  std::vector<char> ours(kBytes, 'x');
  RegDescList list(MemType::kDram);
  list.add(reinterpret_cast<std::uintptr_t>(ours.data()), ours.size());
  const auto registered = agent_.register_memory(list);
  ASSERT_TRUE(registered);
  ASSERT_TRUE(agent_.load_remote_md(peer.agent.get_local_md().value()));
  XferDescList local(MemType::kDram);
  local.add(reinterpret_cast<std::uintptr_t>(ours.data()), ours.size());
  auto created = agent_.create_xfer_req(XferOp::kWrite, local, peer.blocks(1), "peer").value();
  EXPECT_EQ(agent_.query_xfer_backend(created)->name(), "UCX");
  const auto here = agent_.prepare_xfer_dlist("", local).value(),
             there = agent_.prepare_xfer_dlist("peer", peer.blocks(1)).value();
  const std::vector<std::int32_t> index = {0};
  const auto made = agent_.make_xfer_req(XferOp::kWrite, here, index, there, index).value();
  EXPECT_EQ(agent_.query_xfer_backend(made)->name(), "UCX");
  const auto own = agent_.create_xfer_req(XferOp::kWrite, local, local, "files");
  ASSERT_TRUE(own) << own.error().to_string();
  EXPECT_EQ(agent_.query_xfer_backend(*own)->name(), "UCX");
  // By name it is refused.
  const OptArgs posix = by_posix();
  EXPECT_EQ(code_of(agent_.create_xfer_req(XferOp::kWrite, local, peer.blocks(1), "peer", &posix).error()),
            NixlCode::kNotFound);
  EXPECT_EQ(code_of(agent_.make_xfer_req(XferOp::kWrite, here, index, there, index, &posix).error()),
            NixlCode::kInvalidParam);
}

TEST_F(CompatFile, PosixAloneMovesNoMemoryToMemory) {
  XferDescList local(MemType::kDram);
  local.add(address(), memory_.size());
  EXPECT_EQ(code_of(agent_.create_xfer_req(XferOp::kWrite, local, local, "files").error()), NixlCode::kNotFound);
  const auto here = agent_.prepare_xfer_dlist("", local).value();
  const auto mirror = agent_.prepare_xfer_dlist("files", local).value();
  const std::vector<std::int32_t> index = {0};
  EXPECT_EQ(code_of(agent_.make_xfer_req(XferOp::kRead, here, index, mirror, index).error()), NixlCode::kInvalidParam);
  Side peer("peer", 4096);
  ASSERT_TRUE(agent_.load_remote_md(peer.agent.get_local_md().value()));
  EXPECT_EQ(code_of(agent_.prepare_xfer_dlist("peer", peer.blocks(1)).error()), NixlCode::kNotFound);
  EXPECT_EQ(code_of(agent_.create_xfer_req(XferOp::kWrite, local, peer.blocks(1), "peer").error()),
            NixlCode::kNotFound);
}

// It has no notifications, so a filter that names nothing else is a mistake, not a wish for all.
TEST_F(CompatFile, NotificationsByPosixAreRefused) {
  ASSERT_TRUE(agent_.create_backend("UCX"));
  ASSERT_TRUE(agent_.send_notification("files", "to myself").ok());
  OptArgs opt = by_posix();
  NotificationMap map;
  EXPECT_EQ(code_of(agent_.get_notifications(map, &opt)), NixlCode::kBackend);
  EXPECT_EQ(code_of(agent_.send_notification("files", "x", &opt)), NixlCode::kBackend);
  EXPECT_EQ(code_of(agent_.make_connection("files", &opt)), NixlCode::kBackend);
  EXPECT_TRUE(map.empty());
  opt.backends.push_back(*agent_.get_backend("UCX"));
  EXPECT_TRUE(eventually([&] { return agent_.get_notifications(map, &opt).ok() && !map.empty(); }));
  EXPECT_TRUE(agent_.make_connection("files", &opt).ok());
  // Nor where there is nothing else.
  Agent alone = Agent::open("alone", quiet()).value();
  ASSERT_TRUE(alone.create_backend("POSIX"));
  EXPECT_EQ(code_of(alone.get_notifications(map)), NixlCode::kBackend);
}

}  // namespace
}  // namespace hawser::compat
