#include "backend/quic/packet_writer.h"

#include <cstring>

namespace hawser::backend::quic {

base::SocketAddress address_from(const ngtcp2_addr& address) {
  base::SocketAddress copy;
  std::memcpy(&copy.storage, address.addr, address.addrlen);
  copy.size = address.addrlen;
  return copy;
}

PacketWriter::Written Ngtcp2Writer::write(const Wanted& wanted, std::span<std::byte> room, Instant now) {
  ngtcp2_path_storage where = {};
  where.path.local.addr = reinterpret_cast<ngtcp2_sockaddr*>(&where.local_addrbuf);
  where.path.remote.addr = reinterpret_cast<ngtcp2_sockaddr*>(&where.remote_addrbuf);
  ngtcp2_pkt_info info = {};
  Written written = {.taken = -1};
  written.size = library_.conn_writev_stream_versioned(
      connection_, &where.path, kPacketVersion, &info, reinterpret_cast<std::uint8_t*>(room.data()), room.size(),
      &written.taken, wanted.is_last ? NGTCP2_WRITE_STREAM_FLAG_FIN : NGTCP2_WRITE_STREAM_FLAG_NONE, wanted.stream,
      wanted.parts.empty() ? nullptr : wanted.parts.data(), wanted.parts.size(), stamp(now));
  if (written.size > 0) written.route = {address_from(where.path.local), address_from(where.path.remote)};
  return written;
}

}  // namespace hawser::backend::quic
