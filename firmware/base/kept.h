// SPDX-License-Identifier: BSD-2-Clause
// What compilers had better not know. The address of an element in an array of large ones takes a
// multiplication, which they would do anew at every use rather than keep its result; whoever uses
// one more than once says so here. And what they know to be at most a few KiB they copy by a loop
// of their own (x86's `rep movs`), which is slower than a call of memcpy().
#pragma once

namespace peal {

template <typename Element>
[[gnu::always_inline]] inline Element& kept(Element& element) {
  Element* address = &element;
  asm("" : "+r"(address));  // no instruction, but where it comes from is forgotten
  return *address;
}

template <typename Number>
[[gnu::always_inline]] inline Number opaque(Number number) {
  asm("" : "+r"(number));  // the same, of how much it can be
  return number;
}

}  // namespace peal
