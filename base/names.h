// SPDX-License-Identifier: BSD-2-Clause
// The lists of abi/ as tables: the word for a number and the number for a word, for whoever prints
// or parses one. A number that is in no list (a card or a driver may be newer) is printed as such.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "abi/admin.h"
#include "abi/program.h"
#include "abi/status.h"
#include "abi/wire.h"

namespace peal::names {

struct Row {
  uint32_t value;
  const char* symbol;  // as in the enumeration, without its prefix
  const char* name;    // as programs print it
  const char* text;    // what it means
};
using Rows = std::span<const Row>;

#define PEAL_NAMES_ROW(value, symbol, name, text) {value, #symbol, name, text},
inline constexpr Row kStatuses[] = {PEAL_STATUSES(PEAL_NAMES_ROW)};
inline constexpr Row kPacketTypes[] = {PEAL_PACKET_TYPES(PEAL_NAMES_ROW)};
inline constexpr Row kOperations[] = {PEAL_OPERATIONS(PEAL_NAMES_ROW)};
inline constexpr Row kAlgorithms[] = {PEAL_ALGORITHMS(PEAL_NAMES_ROW)};
inline constexpr Row kAdminOpcodes[] = {PEAL_ADMIN_OPCODES(PEAL_NAMES_ROW)};
inline constexpr Row kProgramOpcodes[] = {PEAL_PROGRAM_OPCODES(PEAL_NAMES_ROW)};
inline constexpr Row kProgramModes[] = {PEAL_PROGRAM_MODES(PEAL_NAMES_ROW)};
inline constexpr Row kProgramReasons[] = {PEAL_PROGRAM_REASONS(PEAL_NAMES_ROW)};
#undef PEAL_NAMES_ROW

// Null where the list has no such row.
constexpr const Row* row_of(Rows rows, uint32_t value) {
  for (const Row& row : rows)
    if (row.value == value) return &row;
  return nullptr;
}

constexpr std::optional<uint8_t> value_of(Rows rows, std::string_view name) {
  for (const Row& row : rows)
    if (row.name == name) return static_cast<uint8_t>(row.value);
  return std::nullopt;
}

// The name, or `unknown`-N.
inline std::string text_of(Rows rows, const char* unknown, uint32_t value) {
  const Row* row = row_of(rows, value);
  return row != nullptr ? row->name : std::string(unknown) + "-" + std::to_string(value);
}

// The names of these, in this order: what a program's option takes.
inline std::vector<std::string> names_of(Rows rows, std::initializer_list<uint32_t> values) {
  std::vector<std::string> names;
  for (const uint32_t value : values) names.emplace_back(row_of(rows, value)->name);
  return names;
}

// "a, b or c": what may be there, in an error text or a help text.
inline std::string list_of(const std::vector<std::string>& words) {
  std::string text;
  for (size_t i = 0; i < words.size(); i++) {
    if (i != 0) text += i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  return text;
}

// "PEER_DEAD", …
inline std::string status(uint32_t value) { return text_of(kStatuses, "status", value); }
// "DATA", "SIGNAL", …
inline std::string packet_type(uint32_t value) { return text_of(kPacketTypes, "type", value); }
// "allgather", "barrier", …
inline std::string operation(uint32_t value) { return text_of(kOperations, "operation", value); }
// "all-to-all-broadcast", …
inline std::string algorithm(uint32_t value) { return text_of(kAlgorithms, "algorithm", value); }
// "bounds", …
inline std::string program_reason(uint32_t value) {
  return text_of(kProgramReasons, "reason", value);
}
// "open context", …
inline std::string admin_opcode(uint32_t value) { return text_of(kAdminOpcodes, "opcode", value); }

}  // namespace peal::names
