// SPDX-License-Identifier: BSD-2-Clause
// Which fields of a header must be those of its pattern, and which may differ.
#include "firmware/wire/header_match.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <set>
#include <string>

namespace peal {
namespace {

constexpr OpenFields kNone = {.origin = false, .length = false, .block_bytes = false};
constexpr OpenFields kAll = {.origin = true, .length = true, .block_bytes = true};

struct Field {
  const char* name;
  size_t offset;
  size_t bytes;
};

#define FIELD(name) \
  Field { #name, offsetof(peal_wire_header, name), sizeof(peal_wire_header::name) }
constexpr Field kFields[] = {
    FIELD(destination), FIELD(source),   FIELD(ethertype),  FIELD(version),     FIELD(type),
    FIELD(header_crc),  FIELD(group),    FIELD(member),     FIELD(payload_crc), FIELD(identity),
    FIELD(signature),   FIELD(sequence), FIELD(piece),      FIELD(origin),      FIELD(sender),
    FIELD(hop),         FIELD(fragment), FIELD(operation),  FIELD(algorithm),   FIELD(edge),
    FIELD(length),      FIELD(flags),    FIELD(block_bytes)};
#undef FIELD

// Fields of which every bit counts, and those of which none does.
struct Split {
  std::set<std::string> counts;
  std::set<std::string> open;
};

Split split(const OpenFields& fields) {
  const HeaderMask mask = header_mask(fields);
  alignas(16) const peal_wire_header pattern = {};
  Split found;
  for (const Field& field : kFields) {
    size_t seen = 0;
    for (size_t bit = 0; bit < 8 * field.bytes; ++bit) {
      peal_wire_header header = pattern;
      reinterpret_cast<uint8_t*>(&header)[field.offset + bit / 8] ^=
          static_cast<uint8_t>(1u << bit % 8);
      seen += header_matches(header, pattern, mask) ? 0 : 1;
    }
    if (seen == 8 * field.bytes) found.counts.insert(field.name);
    if (seen == 0) found.open.insert(field.name);
  }
  return found;
}

const std::set<std::string> kPlaces = {"destination", "source", "header_crc", "payload_crc",
                                       "identity",    "piece",  "sender",     "hop",
                                       "fragment",    "edge"};
const std::set<std::string> kCommon = {"ethertype", "version",   "type",      "group",    "member",
                                       "signature", "operation", "algorithm", "sequence", "flags"};

std::set<std::string> with(std::set<std::string> names, const std::set<std::string>& more) {
  names.insert(more.begin(), more.end());
  return names;
}

TEST(HeaderMatch, EveryBitOfWhatIsCommonCounts) {
  const Split found = split(kNone);
  EXPECT_EQ(found.counts, with(kCommon, {"origin", "length", "block_bytes"}));
  EXPECT_EQ(found.open, kPlaces);
}

TEST(HeaderMatch, WhatIsOpenMayDiffer) {
  const Split found = split(kAll);
  EXPECT_EQ(found.counts, kCommon);
  EXPECT_EQ(found.open, with(kPlaces, {"origin", "length", "block_bytes"}));
}

TEST(HeaderMatch, AHeaderMayLieAnywhere) {
  alignas(16) peal_wire_header pattern = {};
  pattern.version = PEAL_WIRE_VERSION;
  alignas(4) uint8_t memory[sizeof(pattern) + 4];
  std::memcpy(memory + 4, &pattern, sizeof(pattern));
  const auto& header = *reinterpret_cast<const peal_wire_header*>(memory + 4);
  EXPECT_TRUE(header_matches(header, pattern, header_mask(kNone)));
}

}  // namespace
}  // namespace peal
