#include "backend/adopted/adoption.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "backend/memory_file.h"
#include "base/file_limit.h"
#include "base/format.h"
#include "base/try.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace hawser::backend {
namespace {

Status lack(std::string_view what, std::size_t size, int error) {
  return base::errno_status(Code::kFailed, base::format("{} of {} bytes", what, size), error)
      .with_advice("see `free -m`, the container's memory limit, `ulimit -n` and vm.max_map_count");
}

/// All of them or an error. Not by memcpy: the kernel answers EFAULT where a copy would end the process.
template <typename Call>
Status move_all(Call call, int fd, AddressRange block, std::int64_t offset, std::string_view what) {
  for (std::size_t done = 0; done < block.size();) {
    const ssize_t moved = call(fd, block.data() + done, block.size() - done, offset + static_cast<std::int64_t>(done));
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) return lack(what, block.size(), moved == 0 ? EIO : errno);
    done += static_cast<std::size_t>(moved);
  }
  return {};
}

/// Whole pages of it: those that hold no other's bytes.
AddressRange whole_pages(AddressRange bytes, std::size_t page) {
  const std::uintptr_t begin = (bytes.begin + page - 1) / page * page;
  return {begin, std::max(begin, bytes.end / page * page)};
}

/// A thread whose stack moved would be held by its own guard, or lose what it has on it.
Status check_stack(AddressRange pages) {
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  if (here < pages.begin || here >= pages.end) return {};
  return Status(Code::kUnsupported, "this thread's stack lies in it");
}

AddressRange touched_pages(AddressRange bytes, std::size_t page) {
  return {bytes.begin / page * page, (bytes.end + page - 1) / page * page};
}

}  // namespace

Result<std::unique_ptr<Adoption>> Adoption::make(std::span<std::byte> bytes, bool peers_write, const WriteGuard* guard,
                                                 void (*before_block)(AddressRange)) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  const AddressRange range{begin, begin + bytes.size()};
  const AddressRange pages = whole_pages(range, page);
  if (pages.size() == 0) return Status(Code::kUnsupported, "it holds no whole page");
  HAWSER_TRY(check_stack(pages));
  HAWSER_TRY_ASSIGN(const auto areas, mapped_areas(pages, AreaDetail::kFlags));
  HAWSER_TRY(check_movable(areas, pages));
  if (const std::uint64_t pinned = pinned_bytes(); pinned != 0) {
    return Status(Code::kUnsupported, base::format("this process has {} bytes pinned for devices, and which cannot be "
                                                   "told",
                                                   pinned));
  }
  std::unique_ptr<Adoption> made(new Adoption(pages, touched_pages(range, page), peers_write, guard));
  HAWSER_TRY(made->open_file());
  for (AddressRange block{pages.begin, pages.begin}; block.end < pages.end; block.begin = block.end) {
    block.end = std::min(block.begin + kBlock, pages.end);
    if (before_block != nullptr) before_block(block);
    if (Status status = made->move_in(block); !status.ok()) {
      // What was moved so far took no more memory than it is given back now.
      Status back = made->move_out_all({pages.begin, block.begin});
      return back.ok() ? status : status.because(back);
    }
  }
  const int seals = F_SEAL_SEAL | (peers_write ? 0 : F_SEAL_FUTURE_WRITE);
  if (::fcntl(made->file_.get(), F_ADD_SEALS, seals) == 0) return made;
  const Status status = base::errno_status(Code::kFailed, "sealing a memory file", errno);
  Status back = made->give_back();
  return back.ok() ? status : status.because(back);
}

Status Adoption::open_file() {
  HAWSER_TRY(base::check_file_limit("memory that is adopted (a memory file)", covered_.size()));
  file_ = make_memory_file("hawser-adopted");
  if (!file_) return lack("making a memory file", covered_.size(), errno);
  const int fd = file_.get();
  const auto size = static_cast<std::int64_t>(covered_.size());
  struct stat status {};
  if (::ftruncate(fd, size) != 0 || ::fstat(fd, &status) != 0) return lack("sizing a memory file", size, errno);
  inode_ = status.st_ino;
  // The pages in place of the ends must be there: a peer that copies over an end must not meet SIGBUS.
  const std::int64_t head = offset_of(pages_.begin);
  const std::int64_t tail = offset_of(pages_.end);
  if ((head != 0 && ::fallocate(fd, 0, 0, head) != 0) || (tail != size && ::fallocate(fd, 0, tail, size - tail) != 0)) {
    return lack("taking the ends of a memory file", size, errno);
  }
  if (::fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0) return {};
  return base::errno_status(Code::kFailed, "sealing a memory file", errno);
}

Status Adoption::move_in(AddressRange block) {
  const WriteGuard::Window window(guard_, block);
  HAWSER_TRY(window.status());
  const std::int64_t offset = offset_of(block.begin);
  HAWSER_TRY(move_all(&::pwrite, file_.get(), block, offset, "moving pages into a memory file"));
  void* const at = ::mmap(block.data(), block.size(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE,
                          file_.get(), offset);
  return at != MAP_FAILED ? Status() : lack("mapping moved pages", block.size(), errno);
}

/// Into fresh private pages that then take the place of the shared ones, in one step.
Status Adoption::copy_out(AddressRange block, void* fresh) {
  const WriteGuard::Window window(guard_, block);
  HAWSER_TRY(window.status());
  const auto begin = reinterpret_cast<std::uintptr_t>(fresh);
  HAWSER_TRY(
      move_all(&::pread, file_.get(), {begin, begin + block.size()}, offset_of(block.begin), "reading moved pages"));
  const void* const at = ::mremap(fresh, block.size(), block.size(), MREMAP_MAYMOVE | MREMAP_FIXED, block.data());
  return at != MAP_FAILED ? Status() : lack("giving back pages", block.size(), errno);
}

Status Adoption::move_out(AddressRange block) {
  HAWSER_TRY(check_stack(block));
  void* const fresh = ::mmap(nullptr, block.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (fresh == MAP_FAILED) return lack("giving back pages", block.size(), errno);
  if (Status status = copy_out(block, fresh); !status.ok()) {
    ::munmap(fresh, block.size());
    return status;
  }
  // Frees them where the file lets it; else they go with the file.
  static_cast<void>(::fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset_of(block.begin),
                                static_cast<std::int64_t>(block.size())));
  return {};
}

Status Adoption::move_out_all(AddressRange range) {
  if (range.size() == 0) return {};
  HAWSER_TRY_ASSIGN(const std::vector<AddressRange> ours, still_ours(range));
  for (const AddressRange& part : ours) {
    for (AddressRange block{part.begin, part.begin}; block.end < part.end; block.begin = block.end) {
      block.end = std::min(block.begin + kBlock, part.end);
      if (Status status = move_out(block); !status.ok()) {
        // A private view of the file keeps the bytes, also where a switch failed half-way.
        const std::size_t left = part.end - block.begin;
        ::mmap(block.data(), left, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file_.get(),
               offset_of(block.begin));
        return status;
      }
    }
  }
  return {};
}

Status Adoption::give_back() { return move_out_all(pages_); }

Result<std::vector<AddressRange>> Adoption::still_ours(AddressRange range) const {
  HAWSER_TRY_ASSIGN(const auto areas, mapped_areas(range, AreaDetail::kPlain));
  std::vector<AddressRange> ours;
  for (const MappedArea& area : areas) {
    const bool is_ours = area.inode == inode_ && area.access.ends_with('s') && area.name.starts_with("/memfd:") &&
                         static_cast<std::int64_t>(area.offset) == offset_of(area.range.begin);
    if (is_ours) ours.push_back(area.range);
  }
  return ours;
}

bool Adoption::is_intact(AddressRange range) const {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const AddressRange touched = touched_pages(range, page);
  const AddressRange wanted{std::max(touched.begin, pages_.begin), std::min(touched.end, pages_.end)};
  const Result<std::vector<AddressRange>> ours = still_ours(wanted);
  std::uintptr_t at = wanted.begin;
  for (std::size_t i = 0; ours && i < ours->size() && (*ours)[i].begin == at; ++i) at = (*ours)[i].end;
  return at == wanted.end;
}

void Adoption::prepare_fork() {
  Result<std::vector<AddressRange>> ours = still_ours(pages_);
  inherited_ = ours ? *std::move(ours) : std::vector<AddressRange>{pages_};
}

void Adoption::leave_to_parent() {
  for (const AddressRange& part : inherited_) {
    const void* at = ::mmap(part.data(), part.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file_.get(),
                            offset_of(part.begin));
    // A child that ends at its first write is better than one that writes into its parent.
    if (at == MAP_FAILED) ::mprotect(part.data(), part.size(), PROT_READ);
  }
}

}  // namespace hawser::backend
