# Python packages. HAWSER_PYTHON says whether they are built: ON must find what it needs, AUTO does so where a virtual
# environment with nanobind is there (`./dev` makes build/venv), OFF does not look, as where another project adds this.

set(hawser_python AUTO)
if(NOT PROJECT_IS_TOP_LEVEL)
  set(hawser_python OFF)
endif()
set(HAWSER_PYTHON "${hawser_python}" CACHE STRING "Build the Python packages: ON, OFF or AUTO")
set(HAWSER_PYTHON_FOUND FALSE)
set(HAWSER_PYTHON_REASON "")

function(_hawser_find_nanobind)
  execute_process(COMMAND "${Python_EXECUTABLE}" -m nanobind --cmake_dir
    OUTPUT_VARIABLE folder OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed AND IS_DIRECTORY "${folder}")
    set(nanobind_ROOT "${folder}" PARENT_SCOPE)
  endif()
endfunction()

if(HAWSER_PYTHON STREQUAL "OFF" OR HAWSER_ONLY_LAYERS OR HAWSER_SANITIZE)
  set(HAWSER_PYTHON_REASON "Python packages are not built in this configuration")
else()
  set(venv "${PROJECT_SOURCE_DIR}/build/venv/bin/python")
  if(NOT Python_EXECUTABLE AND EXISTS "${venv}")
    set(Python_EXECUTABLE "${venv}")
  endif()
  if(Python_EXECUTABLE)
    find_package(Python 3.10 QUIET COMPONENTS Interpreter Development.Module OPTIONAL_COMPONENTS Development.SABIModule)
    if(Python_FOUND)
      _hawser_find_nanobind()
      find_package(nanobind CONFIG QUIET)
    endif()
  endif()
  if(nanobind_FOUND)
    set(HAWSER_PYTHON_FOUND TRUE)
  elseif(HAWSER_PYTHON STREQUAL "ON")
    message(FATAL_ERROR "HAWSER_PYTHON=ON, but there is no Python with its headers and nanobind: set Python_EXECUTABLE")
  elseif(NOT Python_EXECUTABLE)
    set(HAWSER_PYTHON_REASON "no virtual environment in build/venv (python3-venv or the package index is missing)")
  elseif(NOT Python_FOUND)
    set(HAWSER_PYTHON_REASON "no Python headers (python3-dev is missing)")
  else()
    set(HAWSER_PYTHON_REASON "no nanobind in build/venv")
  endif()
endif()
if(HAWSER_PYTHON_FOUND AND SKBUILD_SABI_VERSION AND NOT TARGET Python::SABIModule)
  message(FATAL_ERROR "A wheel for Python ${SKBUILD_SABI_VERSION} and later needs the stable interface, which CMake knows "
                      "from 3.26 on; this is ${CMAKE_VERSION}")
endif()
if(HAWSER_PYTHON_REASON)
  message(STATUS "No Python packages: ${HAWSER_PYTHON_REASON}")
endif()

# hawser_python_package(<name> FOLDER <folder> MODULE <target> COMPONENT <component> LIBRARIES <target>...)
#   Lays out the package <name> in <build>/python for tests, and installs it with the libraries in its folder lib as
#   <component>, which the wheel is made of.
function(hawser_python_package name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "FOLDER;MODULE;COMPONENT" "LIBRARIES")
  file(GLOB files CONFIGURE_DEPENDS RELATIVE "${arg_FOLDER}" "${arg_FOLDER}/*.py" "${arg_FOLDER}/*.pyi"
       "${arg_FOLDER}/py.typed")
  foreach(file IN LISTS files)
    file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/python/${name}")
    file(CREATE_LINK "${arg_FOLDER}/${file}" "${PROJECT_BINARY_DIR}/python/${name}/${file}" SYMBOLIC)
  endforeach()
  if(HAWSER_DEBIAN)
    install(TARGETS ${arg_MODULE} LIBRARY DESTINATION lib/python3/dist-packages/${name} COMPONENT python3-${name})
    list(TRANSFORM files PREPEND "${arg_FOLDER}/")
    install(FILES ${files} DESTINATION lib/python3/dist-packages/${name} COMPONENT python3-${name})
    return()
  endif()
  install(TARGETS ${arg_MODULE} LIBRARY DESTINATION ${name} COMPONENT ${arg_COMPONENT} EXCLUDE_FROM_ALL)
  foreach(library IN LISTS arg_LIBRARIES)
    # One file, under the name that is linked: wheels hold no links.
    install(FILES $<TARGET_FILE:${library}> DESTINATION ${name}/lib RENAME $<TARGET_SONAME_FILE_NAME:${library}>
            COMPONENT ${arg_COMPONENT} EXCLUDE_FROM_ALL)
  endforeach()
endfunction()

# hawser_python_extras(<package> <component>): what C programs and people need of the package: the command, and the C
# headers with their CMake and pkg-config files.
function(hawser_python_extras name component)
  install(TARGETS hawser_program RUNTIME DESTINATION "${name}/bin" COMPONENT ${component} EXCLUDE_FROM_ALL)
  foreach(header c.h c_types.h c_world.h plugin.h)
    install(FILES "${PROJECT_SOURCE_DIR}/include/hawser/${header}" DESTINATION "${name}/include/hawser"
            COMPONENT ${component} EXCLUDE_FROM_ALL)
  endforeach()
  install(FILES "${PROJECT_BINARY_DIR}/include/hawser/version.h" DESTINATION "${name}/include/hawser"
          COMPONENT ${component} EXCLUDE_FROM_ALL)
  set(HAWSER_SONAME "libhawser.so.${PROJECT_VERSION_MAJOR}")
  set(made "${PROJECT_BINARY_DIR}/${name}_wheel")
  configure_file("${PROJECT_SOURCE_DIR}/cmake/wheel/hawser-config.cmake.in" "${made}/hawser-config.cmake" @ONLY)
  configure_file("${PROJECT_SOURCE_DIR}/cmake/wheel/hawser.pc.in" "${made}/hawser.pc" @ONLY)
  include(CMakePackageConfigHelpers)
  write_basic_package_version_file("${made}/hawser-config-version.cmake" COMPATIBILITY SameMinorVersion)
  install(FILES "${made}/hawser-config.cmake" "${made}/hawser-config-version.cmake"
          DESTINATION "${name}/lib/cmake/hawser" COMPONENT ${component} EXCLUDE_FROM_ALL)
  install(FILES "${made}/hawser.pc" DESTINATION "${name}/lib/pkgconfig" COMPONENT ${component} EXCLUDE_FROM_ALL)
endfunction()

# hawser_python_bundle(<package> <component>): what a portable build brings along: libraries that it opens at run time and
# that few systems have (HAWSER_BUNDLED: each file, and its name), and the licences of these and of what it linked in.
function(hawser_python_bundle name component)
  set(rest ${HAWSER_BUNDLED})
  while(rest)
    list(POP_FRONT rest file soname)
    install(FILES "${file}" DESTINATION "${name}/lib" RENAME "${soname}" COMPONENT ${component} EXCLUDE_FROM_ALL)
  endwhile()
  foreach(package IN LISTS HAWSER_LICENSES)
    install(FILES "/usr/share/doc/${package}/copyright" DESTINATION "${name}/licenses" RENAME "${package}.txt"
            COMPONENT ${component} EXCLUDE_FROM_ALL)
  endforeach()
endfunction()
