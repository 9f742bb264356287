# dep::ngtcp2_headers, where HAWSER_NGTCP2_INCLUDE_DIR has those of a version that the code is written for. These are the
# two binary interfaces of ngtcp2 that Debian has: 0.12 and 1.11, which later 1.x keep. A build opens the one of its headers
# at run time, by what is defined here: libraries, their packages, and the system that has these. Without headers of either
# a build has no backend `quic`, and says so where it is asked for. Sets HAWSER_NGTCP2_LIBRARIES, HAWSER_NGTCP2_PACKAGES.

# hawser_ngtcp2_headers([DEFINE <definition>...]): DEFINE adds to what its users are compiled with.
function(hawser_ngtcp2_headers)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "DEFINE")
  set(HAWSER_NGTCP2_LIBRARIES "" PARENT_SCOPE)
  set(HAWSER_NGTCP2_PACKAGES "" PARENT_SCOPE)
  if(NOT HAWSER_NGTCP2_INCLUDE_DIR)
    return()
  endif()
  file(STRINGS "${HAWSER_NGTCP2_INCLUDE_DIR}/ngtcp2/version.h" version REGEX "define NGTCP2_VERSION \"")
  string(REGEX REPLACE ".*\"([0-9.]+).*" "\\1" version "${version}")
  if(version VERSION_GREATER_EQUAL 0.12 AND version VERSION_LESS 0.13)
    set(packages libngtcp2-9 libngtcp2-crypto-gnutls2)
    set(core libngtcp2.so.9)
    set(binding libngtcp2_crypto_gnutls.so.2)
    set(system "Debian 12")
  elseif(version VERSION_GREATER_EQUAL 1.11 AND version VERSION_LESS 2)
    set(packages libngtcp2-16 libngtcp2-crypto-gnutls8)
    set(core libngtcp2.so.16)
    set(binding libngtcp2_crypto_gnutls.so.8)
    set(system "Debian 13")
  else()
    message(STATUS "No backend quic: ngtcp2 is ${version}, and must be 0.12, or 1.11 or a later 1.x")
    return()
  endif()
  list(JOIN packages " " package_words)
  hawser_dependency(ngtcp2_headers DEFINE HAWSER_WITH_QUIC "HAWSER_NGTCP2_CORE=\"${core}\""
    "HAWSER_NGTCP2_BINDING=\"${binding}\"" "HAWSER_NGTCP2_PACKAGES=\"${package_words}\"" "HAWSER_NGTCP2_SYSTEM=\"${system}\""
    ${arg_DEFINE})
  target_include_directories(dep_ngtcp2_headers SYSTEM INTERFACE "${HAWSER_NGTCP2_INCLUDE_DIR}")
  message(STATUS "The backend quic is for ngtcp2 ${version}")
  set(HAWSER_NGTCP2_LIBRARIES "${core};${binding}" PARENT_SCOPE)
  set(HAWSER_NGTCP2_PACKAGES "${packages}" PARENT_SCOPE)
endfunction()
