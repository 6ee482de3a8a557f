// SPDX-License-Identifier: BSD-2-Clause
// Places for the tables of parts (abi/queue.h) of a group's operations. The card reads a table some
// time before its operation completes, so each operation that may be outstanding has a place of its
// own until then. When it is over nobody says so here: whoever takes a place looks whose are. So
// operations without a table cost nothing for it.
#pragma once

#include <cstdint>
#include <vector>

#include "abi/queue.h"
#include "hostlib/part_shape.h"
#include "hostlib/transport.h"

namespace peal::host {

// Under the context's lock.
class PartTables {
 public:
  // What make() needs for so many tables.
  static size_t bytes_of(uint32_t tables, uint32_t parts) {
    return size_t{tables} * parts * sizeof(peal_part);
  }

  [[nodiscard]] bool made() const { return memory_.address != nullptr; }
  // In memory that the card may read, which stays the caller's to release.
  void make(const Allocation& memory, uint32_t tables, uint32_t parts) {
    memory_ = memory;
    parts_ = parts;
    users_.assign(tables, kNobody);
    shapes_.assign(tables, {});
  }
  [[nodiscard]] const Allocation& memory() const { return memory_; }

  // One that nobody uses any more, as `pending(cookie)` says of those that were its users. There is
  // always one: no more operations are outstanding than there are tables.
  template <typename Pending>
  [[nodiscard]] uint32_t find(Pending pending) const {
    uint32_t table = 0;
    while (users_[table] != kNobody && pending(users_[table])) table++;
    return table;
  }
  void take(uint32_t table, uint64_t cookie) { users_[table] = cookie; }

  // What it was written for, kept by whoever writes it.
  [[nodiscard]] PartShape& shape(uint32_t table) { return shapes_[table]; }

  [[nodiscard]] uint32_t key() const { return memory_.key; }
  // Of a table, bytes into the key's memory.
  [[nodiscard]] uint64_t offset(uint32_t table) const { return bytes_of(table, parts_); }
  [[nodiscard]] peal_part* at(uint32_t table) const {
    return reinterpret_cast<peal_part*>(memory_.address + offset(table));
  }

 private:
  static constexpr uint64_t kNobody = ~uint64_t{0};

  Allocation memory_;
  uint32_t parts_ = 0;  // of a table
  std::vector<PartShape> shapes_;
  std::vector<uint64_t> users_;  // cookie of the last operation of each table
};

}  // namespace peal::host
