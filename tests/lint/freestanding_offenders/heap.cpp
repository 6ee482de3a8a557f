// SPDX-License-Identifier: BSD-2-Clause
// refused for: operator new
int* take_from_the_heap(int value) { return new int(value); }
