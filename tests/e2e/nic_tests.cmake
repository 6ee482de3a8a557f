# SPDX-License-Identifier: BSD-2-Clause
# End-to-end tests of peal-nic alone: real processes on its socket, without libpeal. Included by emulator/nic.
foreach(name faults idle memory shutdown socket stranger)
  add_test(NAME nic_${name}
    COMMAND ${PEAL_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/nic_${name}_test.py $<TARGET_FILE:peal-nic>)
  set_tests_properties(nic_${name} PROPERTIES LABELS e2e TIMEOUT 600)
endforeach()
# Tenants: a hostile neighbour, and a victim that must get on.
foreach(name IN ITEMS descriptors exec memory shares small)
  add_test(NAME nic_neighbour_${name}
    COMMAND ${PEAL_PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/neighbour_${name}_test.py $<TARGET_FILE:peal-nic>)
  set_tests_properties(nic_neighbour_${name} PROPERTIES LABELS e2e TIMEOUT 600)
endforeach()
