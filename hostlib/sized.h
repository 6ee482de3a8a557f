// SPDX-License-Identifier: BSD-2-Clause
// Structures of the public API that may grow: they begin with their size as the caller's header has
// it, and nothing beyond that is read or written.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "hostlib/error.h"

namespace peal::host {

// More than any header will ever have: a size that was never set.
inline constexpr size_t kStructBytesMax = 4096;

template <typename Struct>
peal_error check_struct_bytes(const Struct& callers, const char* name) {
  static_assert(std::is_trivially_copyable_v<Struct> && offsetof(Struct, struct_bytes) == 0);
  const size_t bytes = callers.struct_bytes;
  if (bytes >= sizeof(size_t) && bytes <= kStructBytesMax) return PEAL_OK;
  return fail(PEAL_ERR_INVALID_ARGUMENT, "%s: struct_bytes is %zu, expected sizeof(%s)", name,
              bytes, name);
}

// What the caller says, with zero for what its header does not have.
template <typename Struct>
peal_error take_struct(const Struct* callers, const char* name, Struct* taken) {
  *taken = {};
  if (callers == nullptr) return PEAL_OK;
  const peal_error error = check_struct_bytes(*callers, name);
  if (error != PEAL_OK) return error;
  const auto* bytes = reinterpret_cast<const unsigned char*>(callers);
  memcpy(static_cast<void*>(taken), bytes, std::min(callers->struct_bytes, sizeof(Struct)));
  for (size_t at = sizeof(Struct); at < callers->struct_bytes; at++) {
    if (bytes[at] == 0) continue;
    return fail(PEAL_ERR_INVALID_ARGUMENT,
                "%s: byte %zu is set, but this library (%s) knows only %zu bytes", name, at,
                peal_version(), sizeof(Struct));
  }
  return PEAL_OK;
}

// As much of `whole` as the caller's header has; zero for what only that one has.
template <typename Struct>
peal_error give_struct(const Struct& whole, const char* name, Struct* callers) {
  const peal_error error = check_struct_bytes(*callers, name);
  if (error != PEAL_OK) return error;
  const size_t bytes = callers->struct_bytes;
  auto* out = reinterpret_cast<unsigned char*>(callers);
  const size_t known = std::min(bytes, sizeof(Struct));
  memcpy(out, &whole, known);
  memset(out + known, 0, bytes - known);
  memcpy(out, &bytes, sizeof(bytes));
  return PEAL_OK;
}

}  // namespace peal::host
