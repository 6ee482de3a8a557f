# SPDX-License-Identifier: BSD-2-Clause
# The card's sizes and time-outs come from Kconfig. At configure time the chosen profile becomes
# generated/peal_config.h (#define CONFIG_NAME value); a change of Kconfig or of the profile configures again.
# `./peal menuconfig` leaves a .config in the build directory, which then wins over PEAL_CONFIG.

set(PEAL_CONFIG "configs/emulator" CACHE STRING
  "Kconfig profile: emulator, lanai, bluefield, unit, or a path (relative to the source folder)")

set(PEAL_PYTHON /usr/bin/python3 CACHE FILEPATH "Python that has Debian's kconfiglib")

if(EXISTS ${CMAKE_BINARY_DIR}/.config)
  set(peal_config_file ${CMAKE_BINARY_DIR}/.config)
elseif(IS_ABSOLUTE ${PEAL_CONFIG})
  set(peal_config_file ${PEAL_CONFIG})
elseif(EXISTS ${PROJECT_SOURCE_DIR}/configs/${PEAL_CONFIG})
  set(peal_config_file ${PROJECT_SOURCE_DIR}/configs/${PEAL_CONFIG})
else()
  set(peal_config_file ${PROJECT_SOURCE_DIR}/${PEAL_CONFIG})
endif()

set(peal_kconfig_command
  ${PEAL_PYTHON} ${PROJECT_SOURCE_DIR}/cmake/kconfig.py
  --kconfig ${PROJECT_SOURCE_DIR}/Kconfig
  --config ${peal_config_file}
  --header ${CMAKE_BINARY_DIR}/generated/peal_config.h
  --resolved ${CMAKE_BINARY_DIR}/generated/peal.config)
execute_process(COMMAND ${peal_kconfig_command} RESULT_VARIABLE peal_kconfig_result)
if(NOT peal_kconfig_result EQUAL 0)
  message(FATAL_ERROR "The configuration ${peal_config_file} was refused (see above).")
endif()

set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/Kconfig ${PROJECT_SOURCE_DIR}/cmake/kconfig.py ${peal_config_file})

add_library(peal_config INTERFACE)
target_include_directories(peal_config INTERFACE ${CMAKE_BINARY_DIR}/generated)
