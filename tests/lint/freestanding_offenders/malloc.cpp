// SPDX-License-Identifier: BSD-2-Clause
// refused for: malloc
#include <cstdlib>
void* take_from_the_heap(unsigned long bytes) { return std::malloc(bytes); }
