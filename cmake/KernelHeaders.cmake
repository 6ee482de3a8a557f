# SPDX-License-Identifier: BSD-2-Clause
# Which of the installed kernel headers the driver is built for: the newest of Debian's plain flavour that it is
# written for (eventfd_signal() has other arguments from 6.8 on), else the newest of another flavour, else the newest.

# peal_choose_kernel(RESULT FOLDER...): the best of /usr/src/linux-headers-*, empty where there is none.
function(peal_choose_kernel result)
  set(best)
  list(SORT ARGN COMPARE NATURAL ORDER DESCENDING)
  foreach(flavour IN ITEMS "linux-headers-[0-9.]+-[0-9]+-amd64$" "linux-headers-[0-9.]+-.*amd64$")
    foreach(folder IN LISTS ARGN)
      if(NOT best AND folder MATCHES "${flavour}")
        string(REGEX REPLACE ".*linux-headers-([0-9.]+).*" "\\1" version "${folder}")
        if(version VERSION_LESS 6.8)
          set(best ${folder})
        endif()
      endif()
    endforeach()
  endforeach()
  if(NOT best AND ARGN)
    list(GET ARGN 0 best)
  endif()
  set(${result} ${best} PARENT_SCOPE)
endfunction()
