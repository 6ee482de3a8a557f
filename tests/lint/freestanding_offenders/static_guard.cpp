// SPDX-License-Identifier: BSD-2-Clause
// refused for: __cxa_guard_acquire
int measure();
int initialized_at_first_use() {
  static const int kValue = measure();
  return kValue;
}
