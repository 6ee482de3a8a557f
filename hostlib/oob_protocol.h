// SPDX-License-Identifier: BSD-2-Clause
// The out-of-band exchange on a stream socket. A rank says hello, both sides prove that they know
// the job's token (oob_token.h), then the rank sends one block per round; the server answers each
// round with all blocks, or with the rank that is missing. Everything from the other side is
// checked. What is exchanged is neither hidden nor protected on the way (docs/security.md).
//
//   rank    hello      its number for this connection, and a ticket: the token's hash of it
//   server  challenge  its own number
//   rank    proof      the token's hash of both
//   server  welcome    the same, as the server
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "hostlib/oob_token.h"
#include "peal/oob.h"

namespace peal::host {

inline constexpr uint32_t kOobMagic = 0x6f616570;  // "peao" in memory order
inline constexpr uint32_t kOobVersion = 2;

enum class OobKind : uint32_t {
  kHello = 1,
  kBlock = 2,
  kResult = 3,
  kFailure = 4,
  kChallenge = 5,
  kProof = 6,
  kWelcome = 7,
  kRefused = 8,
};

// Why a connection is turned away.
enum class OobRefusal : uint32_t {
  kNonsense = 0,   // does not speak this protocol
  kVersion = 1,    // another version of it
  kUser = 2,       // of another user, on a Unix socket
  kToken = 3,      // does not know the token
  kSize = 4,       // thinks that the job has another size
  kDuplicate = 5,  // a rank that is there, or was
  kSlow = 6,       // took too long to say who it is
  kCrowd = 7,      // too many others who have not said who they are
  kCount = 8,
};
// What was wrong with whoever was turned away: "wrong token".
const char* refusal_name(OobRefusal reason);

struct OobMessage {
  uint32_t magic;
  OobKind kind;
  uint32_t rank;   // sender; in a failure, who is missing (kNobody: memory); in a refusal, why
  uint32_t size;   // hello and result: ranks
  uint64_t round;  // block and result: 0, 1, 2, ...
  uint32_t bytes;  // of each block; else of what follows
  uint32_t version;
};
static_assert(sizeof(OobMessage) == 32);

// What follows a hello, and what follows a challenge, a proof or a welcome.
struct OobTicket {
  OobNonce nonce;
  OobProof ticket;
};
static_assert(sizeof(OobTicket) == 32);

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
// Until when something may last, on the clock of base/clock.h.
inline constexpr uint64_t kOobForEver = UINT64_MAX;
// A connected or listening socket, or -1 with errno, which is ETIMEDOUT at the deadline. Looking up
// a host's name takes as long as the system lets it.
int oob_connect_once(const OobAddress& address, uint64_t deadline_ms = kOobForEver);
int oob_listen(const OobAddress& address, int backlog);

// Whose process the other end of a Unix socket is: the one that connected, or that listens. -1:
// the kernel does not say.
int64_t oob_peer_user(int fd);
// Our own user, or root, who could do what he likes anyway.
bool may_take_part(int64_t user);

}  // namespace peal::host
