#include "backend/quic/ngtcp2_version.h"

#include "backend/quic/ngtcp2_library.h"

namespace hawser::backend::quic {

CloseError Ngtcp2::close_by_code(std::uint64_t code) const {
  CloseError close;
  close_default(&close);
  close_set_application(&close, code, nullptr, 0);
  return close;
}

CloseError Ngtcp2::close_by_alert(std::uint8_t alert) const {
  CloseError close;
  close_default(&close);
  close_set_alert(&close, alert, nullptr, 0);
  return close;
}

CloseError Ngtcp2::close_by_error(int error) const {
  CloseError close;
  close_default(&close);
  close_set_error(&close, error, nullptr, 0);
  return close;
}

ConnectionFigures Ngtcp2::figures(ngtcp2_conn* connection) const {
  ConnectionFigures figures = {};
  conn_get_figures(connection, kFiguresVersion, &figures);
  return figures;
}

// What versions have by other signatures.

#if NGTCP2_VERSION_NUM < 0x010000

int Ngtcp2::shutdown_stream(ngtcp2_conn* connection, std::int64_t id, std::uint64_t code) const {
  return conn_shutdown_stream(connection, id, code);
}

CloseError Ngtcp2::close_of(ngtcp2_conn* connection) const {
  CloseError close;
  conn_get_close(connection, &close);
  return close;
}

#else

int Ngtcp2::shutdown_stream(ngtcp2_conn* connection, std::int64_t id, std::uint64_t code) const {
  return conn_shutdown_stream(connection, 0, id, code);
}

CloseError Ngtcp2::close_of(ngtcp2_conn* connection) const { return *conn_get_close(connection); }

#endif

}  // namespace hawser::backend::quic
