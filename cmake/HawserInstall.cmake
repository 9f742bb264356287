# What `cmake --install` lays down: library, headers, CMake package, pkg-config file, and the command line, which its
# own folder installs. Components are named after the Debian packages that HawserPackages.cmake makes of them.

if(NOT TARGET hawser)
  return()
endif()
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/hawser")
set(development COMPONENT libhawser-dev)
install(TARGETS hawser EXPORT hawser-targets
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT libhawser0 NAMELINK_COMPONENT libhawser-dev)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/hawser" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" ${development}
        FILES_MATCHING PATTERN "*.h")
install(FILES "${PROJECT_BINARY_DIR}/include/hawser/version.h" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/hawser"
        ${development})
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}" COMPONENT documents)
install(EXPORT hawser-targets NAMESPACE hawser:: DESTINATION "${package_dir}" ${development})

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/hawser-config.cmake.in"
  "${PROJECT_BINARY_DIR}/hawser-config.cmake" INSTALL_DESTINATION "${package_dir}")
# Before 1.0 a minor release may change the C++ door.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/hawser-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/hawser-config.cmake" "${PROJECT_BINARY_DIR}/hawser-config-version.cmake"
        DESTINATION "${package_dir}" ${development})

file(RELATIVE_PATH HAWSER_PC_PREFIX "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
configure_file("${PROJECT_SOURCE_DIR}/cmake/hawser.pc.in" "${PROJECT_BINARY_DIR}/hawser.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/hawser.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" ${development})
