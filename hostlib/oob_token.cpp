// SPDX-License-Identifier: BSD-2-Clause
// Tokens and proofs; see oob_token.h.
#include "hostlib/oob_token.h"

#include <sys/random.h>

#include <bit>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/file_descriptor.h"

namespace peal::host {
namespace {

uint64_t word_at(const uint8_t* bytes) {
  uint64_t word = 0;
  memcpy(&word, bytes, sizeof(word));
  return word;
}

struct SipState {
  uint64_t v0, v1, v2, v3;

  void round() {
    v0 += v1;
    v2 += v3;
    v1 = std::rotl(v1, 13) ^ v0;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 = std::rotl(v0, 32);
    v2 += v1;
    v0 += v3;
    v1 = std::rotl(v1, 17) ^ v2;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 = std::rotl(v2, 32);
  }
  void take(uint64_t word) {
    v3 ^= word;
    round();
    round();
    v0 ^= word;
  }
  uint64_t result() {
    for (int i = 0; i < 4; i++) round();
    return v0 ^ v1 ^ v2 ^ v3;
  }
};

int digit_of(char letter) {
  if (letter >= '0' && letter <= '9') return letter - '0';
  if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
  if (letter >= 'A' && letter <= 'F') return letter - 'A' + 10;
  return -1;
}

}  // namespace

OobProof keyed_hash(const OobToken& token, const void* data, size_t bytes) {
  const uint64_t k0 = word_at(token.data());
  const uint64_t k1 = word_at(token.data() + 8);
  SipState state = {k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d ^ 0xee,
                    k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573};
  const auto* at = static_cast<const uint8_t*>(data);
  size_t left = bytes;
  for (; left >= 8; left -= 8, at += 8) state.take(word_at(at));
  uint8_t last[8] = {};
  if (left != 0) memcpy(last, at, left);
  last[7] = static_cast<uint8_t>(bytes);
  state.take(word_at(last));
  state.v2 ^= 0xee;
  const uint64_t low = state.result();
  state.v1 ^= 0xdd;
  const uint64_t high = state.result();
  OobProof proof;
  memcpy(proof.data(), &low, 8);
  memcpy(proof.data() + 8, &high, 8);
  return proof;
}

OobProof make_proof(const OobToken& token, OobSide side, uint32_t rank, uint32_t size,
                    const OobNonce& of_rank, const OobNonce& of_server) {
  struct {
    OobSide side;
    uint32_t rank;
    uint32_t size;
    uint32_t version;
    OobNonce of_rank;
    OobNonce of_server;
  } const said = {side, rank, size, 2, of_rank, of_server};
  static_assert(sizeof(said) == 48);
  return keyed_hash(token, &said, sizeof(said));
}

bool same_proof(const OobProof& one, const OobProof& other) {
  // Volatile, so that no compiler leaves the loop at the first difference.
  volatile uint8_t different = 0;
  for (size_t i = 0; i < one.size(); i++) {
    different = static_cast<uint8_t>(different | (one[i] ^ other[i]));
  }
  return different == 0;
}

bool draw(std::array<uint8_t, 16>* random) {
  size_t have = 0;
  while (have < random->size()) {
    const ssize_t got =
        retried([&] { return getrandom(random->data() + have, random->size() - have, 0); });
    if (got <= 0) return false;
    have += static_cast<size_t>(got);
  }
  return true;
}

std::string token_text(const OobToken& token) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : token) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

bool parse_token(const char* text, OobToken* token) {
  if (strlen(text) != 2 * token->size()) return false;
  for (size_t i = 0; i < token->size(); i++) {
    const int high = digit_of(text[2 * i]);
    const int low = digit_of(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    (*token)[i] = static_cast<uint8_t>(high << 4 | low);
  }
  return true;
}

bool token_of_environment(std::optional<OobToken>* token, std::string* error) {
  token->reset();
  const char* text = getenv(kOobTokenVariable);
  if (text == nullptr || *text == '\0') return true;
  OobToken parsed;
  if (!parse_token(text, &parsed)) {
    // Not shown: it may be somebody's secret with a letter too many.
    *error = "$PEAL_OOB_TOKEN has " + std::to_string(strlen(text)) +
             " characters or strange ones: expected 32 hexadecimal digits";
    return false;
  }
  *token = parsed;
  return true;
}

}  // namespace peal::host
