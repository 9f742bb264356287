#include "backend/quic/ngtcp2_version.h"

#include "backend/quic/ngtcp2_library.h"

namespace hawser::backend::quic {

#if NGTCP2_VERSION_NUM < 0x010000

int Ngtcp2::shutdown_stream(ngtcp2_conn* connection, std::int64_t id, std::uint64_t code) const {
  return conn_shutdown_stream(connection, id, code);
}

CloseError Ngtcp2::close_by_code(std::uint64_t code) const {
  CloseError close;
  connection_close_error_default(&close);
  connection_close_error_set_application_error(&close, code, nullptr, 0);
  return close;
}

CloseError Ngtcp2::close_by_alert(std::uint8_t alert) const {
  CloseError close;
  connection_close_error_default(&close);
  connection_close_error_set_transport_error_tls_alert(&close, alert, nullptr, 0);
  return close;
}

CloseError Ngtcp2::close_by_error(int error) const {
  CloseError close;
  connection_close_error_default(&close);
  connection_close_error_set_transport_error_liberr(&close, error, nullptr, 0);
  return close;
}

CloseError Ngtcp2::close_of(ngtcp2_conn* connection) const {
  CloseError close;
  conn_get_connection_close_error(connection, &close);
  return close;
}

ConnectionFigures Ngtcp2::figures(ngtcp2_conn* connection) const {
  ConnectionFigures figures = {};
  conn_get_conn_stat_versioned(connection, NGTCP2_CONN_STAT_VERSION, &figures);
  return figures;
}

#else

int Ngtcp2::shutdown_stream(ngtcp2_conn* connection, std::int64_t id, std::uint64_t code) const {
  return conn_shutdown_stream(connection, 0, id, code);
}

CloseError Ngtcp2::close_by_code(std::uint64_t code) const {
  CloseError close;
  ccerr_default(&close);
  ccerr_set_application_error(&close, code, nullptr, 0);
  return close;
}

CloseError Ngtcp2::close_by_alert(std::uint8_t alert) const {
  CloseError close;
  ccerr_default(&close);
  ccerr_set_tls_alert(&close, alert, nullptr, 0);
  return close;
}

CloseError Ngtcp2::close_by_error(int error) const {
  CloseError close;
  ccerr_default(&close);
  ccerr_set_liberr(&close, error, nullptr, 0);
  return close;
}

CloseError Ngtcp2::close_of(ngtcp2_conn* connection) const { return *conn_get_ccerr(connection); }

ConnectionFigures Ngtcp2::figures(ngtcp2_conn* connection) const {
  ConnectionFigures figures = {};
  conn_get_conn_info_versioned(connection, NGTCP2_CONN_INFO_V1, &figures);
  return figures;
}

#endif

}  // namespace hawser::backend::quic
