# Third-party libraries under one set of names, dep::<name>, whatever their packages call them. A build of some layers
# (HAWSER_ONLY_LAYERS) has the header-only ones alone; asking for another there is an error that names it.
# `./dev install-deps` installs them all.

function(hawser_dependency name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINK;DEFINE")
  add_library(dep_${name} INTERFACE)
  target_link_libraries(dep_${name} INTERFACE ${arg_LINK})
  target_compile_definitions(dep_${name} INTERFACE ${arg_DEFINE})
  add_library(dep::${name} ALIAS dep_${name})
endfunction()

# xxHash is compiled into its user on every platform, so its symbols never meet another copy in the process.
hawser_dependency(xxhash DEFINE XXH_INLINE_ALL)

if(HAWSER_ONLY_LAYERS)
  hawser_dependency(fmt DEFINE FMT_HEADER_ONLY)
  hawser_dependency(json)
  return()
endif()
if(HAWSER_PORTABLE)
  include(HawserPortable)
  return()
endif()

find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(hwloc REQUIRED IMPORTED_TARGET hwloc)
pkg_check_modules(uring REQUIRED IMPORTED_TARGET liburing)
pkg_check_modules(sodium REQUIRED IMPORTED_TARGET libsodium)

# Opened at run time, so their headers alone are used.
find_path(HAWSER_CURL_INCLUDE_DIR curl/curl.h REQUIRED)
hawser_dependency(curl_headers)
target_include_directories(dep_curl_headers SYSTEM INTERFACE "${HAWSER_CURL_INCLUDE_DIR}")

find_path(HAWSER_IBVERBS_INCLUDE_DIR infiniband/verbs.h REQUIRED)
hawser_dependency(ibverbs_headers)
target_include_directories(dep_ibverbs_headers SYSTEM INTERFACE "${HAWSER_IBVERBS_INCLUDE_DIR}")

find_path(HAWSER_GNUTLS_INCLUDE_DIR gnutls/gnutls.h REQUIRED)
hawser_dependency(gnutls_headers)
target_include_directories(dep_gnutls_headers SYSTEM INTERFACE "${HAWSER_GNUTLS_INCLUDE_DIR}")

# The one optional part. The code is written for the two binary interfaces of ngtcp2 that Debian has: 0.12 and 1.11, which
# later 1.x keep. It opens the one of the headers at run time, by what is defined here: libraries, their packages, and the
# system that has these. A build without headers of either has no backend `quic`, and says so where it is asked for.
find_path(HAWSER_NGTCP2_INCLUDE_DIR ngtcp2/ngtcp2_crypto_gnutls.h)
if(HAWSER_NGTCP2_INCLUDE_DIR)
  file(STRINGS "${HAWSER_NGTCP2_INCLUDE_DIR}/ngtcp2/version.h" ngtcp2_version REGEX "define NGTCP2_VERSION \"")
  string(REGEX REPLACE ".*\"([0-9.]+).*" "\\1" ngtcp2_version "${ngtcp2_version}")
  set(HAWSER_NGTCP2_PACKAGES "")
  if(ngtcp2_version VERSION_GREATER_EQUAL 0.12 AND ngtcp2_version VERSION_LESS 0.13)
    set(HAWSER_NGTCP2_PACKAGES libngtcp2-9 libngtcp2-crypto-gnutls2)
    set(ngtcp2_names libngtcp2.so.9 libngtcp2_crypto_gnutls.so.2 "Debian 12")
  elseif(ngtcp2_version VERSION_GREATER_EQUAL 1.11 AND ngtcp2_version VERSION_LESS 2)
    set(HAWSER_NGTCP2_PACKAGES libngtcp2-16 libngtcp2-crypto-gnutls8)
    set(ngtcp2_names libngtcp2.so.16 libngtcp2_crypto_gnutls.so.8 "Debian 13")
  endif()
  if(HAWSER_NGTCP2_PACKAGES)
    list(JOIN HAWSER_NGTCP2_PACKAGES " " ngtcp2_packages)
    list(GET ngtcp2_names 0 ngtcp2_core)
    list(GET ngtcp2_names 1 ngtcp2_binding)
    list(GET ngtcp2_names 2 ngtcp2_system)
    hawser_dependency(ngtcp2_headers DEFINE HAWSER_WITH_QUIC "HAWSER_NGTCP2_CORE=\"${ngtcp2_core}\""
      "HAWSER_NGTCP2_BINDING=\"${ngtcp2_binding}\"" "HAWSER_NGTCP2_PACKAGES=\"${ngtcp2_packages}\""
      "HAWSER_NGTCP2_SYSTEM=\"${ngtcp2_system}\"")
    target_include_directories(dep_ngtcp2_headers SYSTEM INTERFACE "${HAWSER_NGTCP2_INCLUDE_DIR}")
    message(STATUS "The backend quic is for ngtcp2 ${ngtcp2_version}")
  else()
    message(STATUS "No backend quic: ngtcp2 is ${ngtcp2_version}, and must be 0.12, or 1.11 or a later 1.x")
  endif()
endif()

find_path(HAWSER_MICROHTTPD_INCLUDE_DIR microhttpd.h REQUIRED)
hawser_dependency(microhttpd_headers)
target_include_directories(dep_microhttpd_headers SYSTEM INTERFACE "${HAWSER_MICROHTTPD_INCLUDE_DIR}")

hawser_dependency(fmt LINK fmt::fmt)
hawser_dependency(json LINK nlohmann_json::nlohmann_json)
hawser_dependency(cli11 LINK CLI11::CLI11)
hawser_dependency(toml LINK tomlplusplus::tomlplusplus)
hawser_dependency(hwloc LINK PkgConfig::hwloc)
hawser_dependency(uring LINK PkgConfig::uring)
hawser_dependency(sodium LINK PkgConfig::sodium)
