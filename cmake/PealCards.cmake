# SPDX-License-Identifier: BSD-2-Clause
# Cards of other sizes than those that are built (PealConfig.cmake): for simulators and tests of configs/NAME, whatever
# is built. Each is compiled once, whoever links it.

# The libraries peal_cards_NAME (firmware, and what every emulated home shares) and peal_cluster_NAME (the virtual-time
# cluster of them). What includes the firmware's headers or the generated one links them PUBLIC or PRIVATE, and not
# peal_firmware or peal_config.
function(peal_cards_of_config name)
  if(TARGET peal_cards_${name})
    return()
  endif()
  if(PEAL_CONFIG STREQUAL "configs/${name}" AND NOT EXISTS ${CMAKE_BINARY_DIR}/.config)
    add_library(peal_cards_${name} INTERFACE)
    target_link_libraries(peal_cards_${name} INTERFACE peal_emulator_common peal_firmware)
    add_library(peal_cluster_${name} INTERFACE)
    target_link_libraries(peal_cluster_${name} INTERFACE peal_cluster peal_cards_${name})
    return()
  endif()
  set(generated ${CMAKE_BINARY_DIR}/generated/cards/${name})
  execute_process(COMMAND ${PEAL_PYTHON} ${PROJECT_SOURCE_DIR}/cmake/kconfig.py
    --kconfig ${PROJECT_SOURCE_DIR}/Kconfig --config ${PROJECT_SOURCE_DIR}/configs/${name}
    --header ${generated}/peal_config.h RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "The configuration configs/${name} was refused (see above).")
  endif()
  set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
    ${PROJECT_SOURCE_DIR}/configs/${name})
  get_property(firmware_sources GLOBAL PROPERTY PEAL_FIRMWARE_SOURCES)
  get_property(common_sources GLOBAL PROPERTY PEAL_COMMON_SOURCES)
  get_property(cluster_sources GLOBAL PROPERTY PEAL_CLUSTER_SOURCES)
  add_library(peal_cards_${name} STATIC EXCLUDE_FROM_ALL
    ${firmware_sources} ${common_sources} $<TARGET_OBJECTS:peal_common_objects>)
  target_include_directories(peal_cards_${name} PUBLIC ${generated})
  target_link_libraries(peal_cards_${name} PUBLIC peal_abi peal_options nlohmann_json::nlohmann_json)
  add_library(peal_cluster_${name} STATIC EXCLUDE_FROM_ALL
    ${cluster_sources} $<TARGET_OBJECTS:peal_cluster_any_objects>)
  target_link_libraries(peal_cluster_${name} PUBLIC peal_cards_${name})
  # They are compiled for tests, once for each of seven configurations, and run for half a minute.
  foreach(library peal_cards_${name} peal_cluster_${name})
    set_target_properties(${library} PROPERTIES UNITY_BUILD ON)
    target_compile_options(${library} PRIVATE -O1 -g0)
  endforeach()
endfunction()
