// SPDX-License-Identifier: BSD-2-Clause
// refused for: typeinfo for Base
struct Base {
  virtual void call();

 protected:
  ~Base() = default;
};
void Base::call() {}
