// SPDX-License-Identifier: BSD-2-Clause
// What the ranks of a job know and nobody else: 128 random bits, made by the launcher and handed
// over in the environment. Both sides of an out-of-band connection prove that they know it, without
// showing it: by a keyed hash (SipHash-2-4 with 128 bits of output; Aumasson and Bernstein, 2012)
// of numbers that both drew for this connection.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace peal::host {

using OobToken = std::array<uint8_t, 16>;
using OobNonce = std::array<uint8_t, 16>;
using OobProof = std::array<uint8_t, 16>;

inline constexpr const char* kOobTokenVariable = "PEAL_OOB_TOKEN";

OobProof keyed_hash(const OobToken& token, const void* data, size_t bytes);

// What the sides of one connection must agree about, and who proves it.
enum class OobSide : uint32_t { kTicket = 0, kRank = 1, kServer = 2 };
OobProof make_proof(const OobToken& token, OobSide side, uint32_t rank, uint32_t size,
                    const OobNonce& of_rank, const OobNonce& of_server);
// In a time that does not depend on where they differ.
bool same_proof(const OobProof& one, const OobProof& other);

// From getrandom(); false when there is no randomness to be had.
bool draw(std::array<uint8_t, 16>* random);
// 32 hexadecimal digits.
std::string token_text(const OobToken& token);
bool parse_token(const char* text, OobToken* token);
// From the environment. Not there: *token is empty.
// False with *error when it is there and senseless.
bool token_of_environment(std::optional<OobToken>* token, std::string* error);

}  // namespace peal::host
