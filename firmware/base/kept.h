// SPDX-License-Identifier: BSD-2-Clause
// The address of an element in an array of large ones takes a multiplication. Compilers would
// rather compute it anew at every use than keep it; whoever uses one more than once says so here.
#pragma once

namespace peal {

template <typename Element>
[[gnu::always_inline]] inline Element& kept(Element& element) {
  Element* address = &element;
  asm("" : "+r"(address));  // no instruction, but where it comes from is forgotten
  return *address;
}

}  // namespace peal
