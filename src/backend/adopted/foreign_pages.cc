#include "backend/adopted/foreign_pages.h"

#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "backend/address_space.h"
#include "base/format.h"
#include "base/mutex.h"
#include "base/try.h"

namespace hawser::backend {

std::size_t RangeList::add(AddressRange range) {
  if (range.size() == 0) range = {};  // Holds nothing.
  if (free_.empty()) {
    free_.reserve(ranges_.size() + 1 > free_.capacity() ? 2 * (ranges_.size() + 1) : 0);  // Removing never allocates.
    ranges_.push_back(range);
    return ranges_.size() - 1;
  }
  const std::size_t place = free_.back();
  free_.pop_back();
  ranges_[place] = range;
  return place;
}

void RangeList::remove(std::size_t place) {
  ranges_[place] = {};
  free_.push_back(place);
  if (free_.size() < ranges_.size()) return;
  ranges_.clear();
  free_.clear();
  constexpr std::size_t kKept = 1024;
  if (ranges_.capacity() > kKept) *this = {};
}

bool RangeList::any(AddressRange range) const {
  return std::any_of(ranges_.begin(), ranges_.end(),
                     [&](const AddressRange& one) { return one.begin < range.end && range.begin < one.end; });
}

/// All registrations of foreign memory in this process.
struct ForeignBook {
  struct Held {
    std::unique_ptr<Adoption> adoption;
    std::uint32_t holders = 0;
    bool is_kept = false;  ///< Never given back, see ForeignPages::keep.
  };

  base::Mutex mutex;
  /// Made with the first adoption and kept, so that giving back never lacks it. Outlives the adoptions.
  std::optional<WriteGuard> guard HAWSER_GUARDED_BY(mutex);
  bool has_told_unguarded HAWSER_GUARDED_BY(mutex) = false;
  RangeList ranges HAWSER_GUARDED_BY(mutex);
  std::map<std::uintptr_t, Held> adoptions HAWSER_GUARDED_BY(mutex);  ///< By their first page; none overlap.
  std::uint32_t life HAWSER_GUARDED_BY(mutex) = 0;                    ///< Forks since the first process.
  bool is_inherited HAWSER_GUARDED_BY(mutex) = false;                 ///< What is in it is a parent's.

  static ForeignBook& get();

  /// In a child: forgets what only its parent has.
  void freshen() HAWSER_REQUIRES(mutex) {
    if (!std::exchange(is_inherited, false)) return;
    ranges = {};
    adoptions.clear();
  }

  std::vector<std::uintptr_t> overlapping(AddressRange range) HAWSER_REQUIRES(mutex);

  Status adopt(ForeignPages& pages, Rights rights) HAWSER_REQUIRES(mutex);
  Status check_room() const HAWSER_REQUIRES(mutex);
  const WriteGuard* get_guard(ForeignPages& pages) HAWSER_REQUIRES(mutex);
  static Status share(ForeignPages& pages, const Adoption& adoption, Rights rights);
};

namespace {

void before_fork() HAWSER_NO_THREAD_SAFETY_ANALYSIS {
  ForeignBook& book = ForeignBook::get();
  book.mutex.lock();
  if (book.is_inherited) return;
  const AreaSurvey survey(AreaDetail::kPlain);
  for (auto& [begin, held] : book.adoptions) held.adoption->prepare_fork();
}
void after_fork_in_parent() HAWSER_NO_THREAD_SAFETY_ANALYSIS { ForeignBook::get().mutex.unlock(); }
void after_fork_in_child() HAWSER_NO_THREAD_SAFETY_ANALYSIS {
  ForeignBook& book = ForeignBook::get();
  if (!book.is_inherited) {
    for (auto& [begin, held] : book.adoptions) held.adoption->leave_to_parent();
  }
  book.guard.reset();  // Its pages are the parent's.
  book.is_inherited = true;
  ++book.life;
  book.mutex.unlock();
}

}  // namespace

ForeignBook& ForeignBook::get() {
  // Never destroyed: agents may close in static destructors.
  static ForeignBook* const the_book = [] {
    ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    return new ForeignBook;
  }();
  return *the_book;
}

namespace {

/// The same for all registrations, so that many cost no more than a count each.
const Status& not_asked() {
  // Never destroyed: agents may close in static destructors.
  static const Status* const the_status =
      new Status(Status(Code::kUnsupported, "it is foreign memory, and adopting it was not asked for")
                     .with_advice("use Agent::allocate, or open the agent with adopt (HAWSER_ADOPT=1)"));
  return *the_status;
}

}  // namespace

std::vector<std::uintptr_t> ForeignBook::overlapping(AddressRange range) {
  std::vector<std::uintptr_t> found;
  auto at = adoptions.upper_bound(range.begin);
  if (at != adoptions.begin()) --at;
  while (at != adoptions.end() && at->first < range.end) {
    const Held& held = at->second;
    const AddressRange pages = held.adoption->pages();
    // What was kept is forgotten once its memory was unmapped, and this is other memory.
    const bool is_gone = held.is_kept && held.holders == 0 && !held.adoption->is_intact(pages);
    if (pages.end > range.begin && !is_gone) found.push_back(at->first);
    at = is_gone ? adoptions.erase(at) : std::next(at);
  }
  return found;
}

Status ForeignBook::check_room() const {
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  // The rest is for sockets and for the program.
  const std::size_t most = std::min<std::size_t>(ForeignPages::kAdoptionsMax, files.rlim_cur / 4);
  if (adoptions.size() < most) return {};
  return Status(Code::kBusy, base::format("{} registrations are adopted, which is the limit", adoptions.size()))
      .with_advice("register fewer and larger ranges, or raise `ulimit -n`");
}

Status ForeignBook::share(ForeignPages& pages, const Adoption& adoption, Rights rights) {
  const AddressRange& range = pages.range_;
  const AddressRange& covered = adoption.covered();
  const AddressRange& moved = adoption.pages();
  if (range.begin < covered.begin || range.end > covered.end) {
    return Status(Code::kUnsupported, "a part of it was adopted for another registration")
        .with_advice("register the larger range first");
  }
  if (allows(rights, Rights::kWrite) && !adoption.peers_write()) {
    return Status(Code::kUnsupported, "it was adopted for another registration that peers may not write to");
  }
  pages.file_ = {.fd = adoption.fd(),
                 .place = range.begin - covered.begin,
                 .head = range.begin < moved.begin ? std::min(moved.begin, range.end) - range.begin : 0,
                 .tail = range.end > moved.end ? range.end - std::max(moved.end, range.begin) : 0};
  return {};
}

/// Null where there is none.
const WriteGuard* ForeignBook::get_guard(ForeignPages& pages) {
  if (guard) return &*guard;
  Result<WriteGuard> made = WriteGuard::make();
  if (made) return &guard.emplace(*std::move(made));
  if (!std::exchange(has_told_unguarded, true)) pages.unguarded_ = made.error();
  return nullptr;
}

Status ForeignBook::adopt(ForeignPages& pages, Rights rights) {
  if (pages.holds_.size() == 1) {
    const Adoption& former = *adoptions.at(pages.holds_[0]).adoption;
    HAWSER_TRY(share(pages, former, rights));
    if (former.is_intact(pages.range_)) return {};
    pages.file_.reset();
    return Status(Code::kUnsupported, "its pages were unmapped after they were adopted for another registration");
  }
  if (!pages.holds_.empty()) return Status(Code::kUnsupported, "parts of it were adopted for other registrations");
  HAWSER_TRY(check_room());  // First: it bounds how often all ranges are looked at.
  // Its peers may be at work in it, and what they write while pages move would be lost.
  if (ranges.any(pages.range_)) return Status(Code::kUnsupported, "another registration holds a part of it as it is");
  HAWSER_TRY_ASSIGN(auto adoption, Adoption::make({pages.range_.data(), pages.range_.size()},
                                                  allows(rights, Rights::kWrite), get_guard(pages)));
  HAWSER_TRY(share(pages, *adoption, rights));
  const std::uintptr_t key = adoption->pages().begin;
  pages.holds_.push_back(key);
  adoptions.emplace(key, Held{std::move(adoption), 0});
  return {};
}

std::shared_ptr<ForeignPages> ForeignPages::hold(std::span<std::byte> bytes, Rights rights, bool adopt) {
  const auto begin = reinterpret_cast<std::uintptr_t>(bytes.data());
  auto pages = std::make_shared<ForeignPages>(Private(), AddressRange{begin, begin + bytes.size()}, adopt);
  ForeignBook& book = ForeignBook::get();
  const base::MutexLock lock(book.mutex);
  book.freshen();
  pages->life_ = book.life;
  pages->holds_ = book.overlapping(pages->range_);
  pages->refusal_ = adopt ? book.adopt(*pages, rights) : not_asked();
  for (const std::uintptr_t key : pages->holds_) ++book.adoptions.at(key).holders;
  pages->place_ = book.ranges.add(pages->range_);
  return pages;
}

Status ForeignPages::release() {
  ForeignBook& book = ForeignBook::get();
  const base::MutexLock lock(book.mutex);
  if (std::exchange(is_released_, true) || life_ != book.life) return {};
  book.ranges.remove(place_);
  Status status;
  for (const std::uintptr_t key : holds_) {
    const auto found = book.adoptions.find(key);
    if (--found->second.holders != 0 || found->second.is_kept) continue;
    if (Status back = found->second.adoption->give_back(); !back.ok()) status = back;
    book.adoptions.erase(found);
  }
  return status;
}

void ForeignPages::keep() {
  ForeignBook& book = ForeignBook::get();
  const base::MutexLock lock(book.mutex);
  if (std::exchange(is_released_, true) || life_ != book.life) return;
  book.ranges.remove(place_);
  for (const std::uintptr_t key : holds_) {
    auto& held = book.adoptions.at(key);
    held.is_kept = true;  // Who registers the memory again shares it.
    --held.holders;
  }
}

ForeignPages::~ForeignPages() { static_cast<void>(release().ok()); }

}  // namespace hawser::backend
