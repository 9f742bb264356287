#include "backend/shm/link.h"

#include "base/format.h"
#include "base/try.h"

namespace hawser::backend::shm {

static_assert(sizeof(RingSide<Atomics>) <= kViewPinsAt);
static_assert(kViewPinsAt + kViewsMax * sizeof(Atomics::Word) <= kLinkHeader / 2);
static_assert(sizeof(RingLine<Atomics>) == kLineSize);

Result<Link> Link::make(std::uint32_t ring_bytes, base::Fd* fd) {
  Link link;
  HAWSER_TRY_ASSIGN(*fd, make_sealed_file("hawser-link", link_bytes(ring_bytes), true));
  HAWSER_TRY_ASSIGN(link.mapping_, Mapping::map(fd->get(), link_bytes(ring_bytes), Mapping::Access::kReadWrite));
  link.ring_bytes_ = ring_bytes;
  link.end_ = End::kOpener;
  return link;
}

Result<Link> Link::adopt(int fd, std::uint32_t ring_bytes) {
  HAWSER_TRY_ASSIGN(const std::size_t size, sealed_size(fd));
  if (size != link_bytes(ring_bytes)) {
    return Status(Code::kCorrupt,
                  base::format("a link of {} bytes came where {} were announced", size, link_bytes(ring_bytes)));
  }
  Link link;
  HAWSER_TRY_ASSIGN(link.mapping_, Mapping::map(fd, size, Mapping::Access::kReadWrite));
  link.ring_bytes_ = ring_bytes;
  link.end_ = End::kAcceptor;
  return link;
}

}  // namespace hawser::backend::shm
