// SPDX-License-Identifier: BSD-2-Clause
// The out-of-band exchange on a stream socket: a client says hello, then sends one block per round;
// the server answers each round with all blocks, or with the rank that is missing. Everything from
// the other side is checked.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "peal/oob.h"

namespace peal::host {

inline constexpr uint32_t kOobMagic = 0x6f616570;  // "peao" in memory order
inline constexpr uint32_t kOobVersion = 1;

enum class OobKind : uint32_t { kHello = 1, kBlock = 2, kResult = 3, kFailure = 4 };

struct OobMessage {
  uint32_t magic;
  OobKind kind;
  uint32_t rank;   // sender; in a failure, the rank that is missing
  uint32_t size;   // hello and result: ranks
  uint64_t round;  // block and result: 0, 1, 2, ...
  uint32_t bytes;  // of each block
  uint32_t version;
};
static_assert(sizeof(OobMessage) == 32);

inline constexpr uint32_t kNobody = 0xffffffffu;

// "unix:PATH" or "tcp:HOST:PORT", and ",serve" behind it.
struct OobAddress {
  bool tcp = false;
  bool serve = false;
  std::string host_or_path;
  std::string port;
};

// False with *error saying what was wrong.
bool parse_oob_address(const std::string& text, OobAddress* address, std::string* error);
// A connected or listening socket, or -1 with errno.
int oob_connect_once(const OobAddress& address);
int oob_listen(const OobAddress& address, int backlog);

}  // namespace peal::host
