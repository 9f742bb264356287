/* Plug-ins that must not be loaded: compiled once for each BROKEN_<fault>, see CMakeLists.txt. */

#include <hawser/plugin.h>

static void put_name(hawser_plugin_table* out, const char* name, size_t size) {
  out->name.data = name;
  out->name.size = size;
}

#ifdef BROKEN_NO_SYMBOL
HAWSER_PLUGIN_EXPORT uint32_t hawser_plugin_v1(const hawser_plugin_host* host, hawser_plugin_table* out);
uint32_t hawser_plugin_v1(const hawser_plugin_host* host, hawser_plugin_table* out) {
  put_name(out, host->version, 1);
  return HAWSER_PLUGIN_OK;
}
#else
uint32_t hawser_plugin_v0(const hawser_plugin_host* host, hawser_plugin_table* out) {
  /* All functions are null. */
  static hawser_plugin_backend_api backend = {.size = sizeof(backend)};
  static hawser_plugin_port_api port = {.size = sizeof(port)};
  static hawser_plugin_path_api path = {.size = sizeof(path)};
  if (host->abi != HAWSER_PLUGIN_ABI || out->size < sizeof(*out)) return HAWSER_PLUGIN_UNSUPPORTED;
  out->size = sizeof(*out);
  out->abi = HAWSER_PLUGIN_ABI;
  out->default_rank = 1;
  put_name(out, "null_function", 13);
  out->backend = &backend;
  out->port = &port;
  out->path = &path;
#ifdef BROKEN_REFUSES
  return HAWSER_PLUGIN_UNSUPPORTED;
#endif
#ifdef BROKEN_SHORT_API
  put_name(out, "short_api", 9);
  backend.size = 40;
#endif
#ifdef BROKEN_SHORT_TABLE
  put_name(out, "short_table", 11);
  out->size = 40;
#endif
#ifdef BROKEN_WRONG_ABI
  put_name(out, "wrong_abi", 9);
  out->abi = 41;
#endif
  return HAWSER_PLUGIN_OK;
}
#endif
