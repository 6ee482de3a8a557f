# SPDX-License-Identifier: BSD-2-Clause
# All that `cmake --install` puts somewhere, on one page. Components: runtime (programs, libpeal.so.0, man pages) and
# development (headers and their man pages, libpeal.a, pkg-config file, CMake package, examples). Nothing that is installed
# knows where: the tree may be moved, and DESTDIR and --prefix may name any folder.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Programs find libpeal from where they lie themselves.
file(RELATIVE_PATH peal_bin_to_lib ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
set(CMAKE_INSTALL_RPATH "$ORIGIN/${peal_bin_to_lib}")

function(peal_install_programs)
  foreach(program ${ARGN})
    if(TARGET ${program})
      install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
    endif()
  endforeach()
endfunction()

# To be called when all targets are there.
function(peal_install)
  peal_install_programs(pealrun pealctl peal-nic peal-sim peal-perf ideal-card peal-matmul)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1
    COMPONENT runtime FILES_MATCHING PATTERN "*.1")
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man3
    COMPONENT development FILES_MATCHING PATTERN "*.3")
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man4
    COMPONENT runtime FILES_MATCHING PATTERN "*.4")
  install(FILES ${PROJECT_SOURCE_DIR}/docs/environment.md ${PROJECT_SOURCE_DIR}/LICENSES/BSD-2-Clause.txt
    DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT runtime)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/tools/examples/hello
    DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples COMPONENT development)

  # The shared library's own objects, once more, with those of the out-of-band exchange that it links.
  set_target_properties(peal PROPERTIES INSTALL_RPATH "")
  add_library(peal_static STATIC $<TARGET_OBJECTS:peal_library_objects> $<TARGET_OBJECTS:peal_oob> $<TARGET_OBJECTS:peal_programs>)
  set_target_properties(peal_static PROPERTIES OUTPUT_NAME peal EXPORT_NAME peal-static LINKER_LANGUAGE CXX)
  target_link_libraries(peal_static PUBLIC Threads::Threads)
  install(TARGETS peal peal_static EXPORT pealTargets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
    INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(FILES ${PROJECT_SOURCE_DIR}/hostlib/include/peal/peal.h ${PROJECT_SOURCE_DIR}/hostlib/include/peal/oob.h
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/peal COMPONENT development)

  # pkg-config: everything is relative to where peal.pc itself lies.
  file(RELATIVE_PATH peal_pc_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
  string(REGEX REPLACE "/$" "" peal_pc_to_prefix "${peal_pc_to_prefix}")
  configure_file(${PROJECT_SOURCE_DIR}/cmake/peal.pc.in ${CMAKE_BINARY_DIR}/generated/peal.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/generated/peal.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)

  # CMake: find_package(peal) gives peal::peal and peal::peal-static.
  set(package ${CMAKE_INSTALL_LIBDIR}/cmake/peal)
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/pealConfig.cmake.in
    ${CMAKE_BINARY_DIR}/generated/pealConfig.cmake INSTALL_DESTINATION ${package})
  # Below 1.0 a minor version may break what was there before.
  write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/pealConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
  install(FILES ${CMAKE_BINARY_DIR}/generated/pealConfig.cmake ${CMAKE_BINARY_DIR}/generated/pealConfigVersion.cmake
    DESTINATION ${package} COMPONENT development)
  install(EXPORT pealTargets NAMESPACE peal:: DESTINATION ${package} COMPONENT development)
endfunction()
