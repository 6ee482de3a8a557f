// SPDX-License-Identifier: BSD-2-Clause
// refused for: __cxa_throw
void refuse(int value) {
  if (value < 0) throw value;
}
