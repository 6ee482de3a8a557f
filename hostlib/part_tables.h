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
  static constexpr uint64_t kNobody = ~uint64_t{0};  // no request has this cookie

  // A place, and who had it last: a request of the context's, which may be another operation's by
  // now, so its cookie as it was then.
  struct Table {
    const peal_request* user;  // never null, so that nobody need ask
    uint64_t cookie = kNobody;
    PartShape shape;  // what it was written for, kept by whoever writes it
  };

  // What make() needs for so many tables.
  static size_t bytes_of(uint32_t tables, uint32_t parts) {
    return size_t{tables} * parts * sizeof(peal_part);
  }

  // `any` request stands for the users that there were not yet; it lives as long. Until tables are
  // made there is one without memory, which was written for nothing: so nobody need ask.
  explicit PartTables(const peal_request& any) : tables_(1, {&any, kNobody, {}}) {}

  [[nodiscard]] bool made() const { return memory_.address != nullptr; }
  // In memory that the card may read, which stays the caller's to release.
  void make(const Allocation& memory, uint32_t tables, uint32_t parts) {
    memory_ = memory;
    parts_ = parts;
    tables_.resize(tables, tables_.front());
  }
  [[nodiscard]] const Allocation& memory() const { return memory_; }

  // One that nobody uses any more, as `pending(request, cookie)` says of those that were its users.
  // There is always one: no more operations are outstanding than there are tables.
  template <typename Pending>
  [[nodiscard]] Table& find(Pending pending) {
    Table* table = tables_.data();
    while (pending(*table->user, table->cookie)) table++;
    return *table;
  }
  [[nodiscard]] uint32_t index_of(const Table& table) const {
    return static_cast<uint32_t>(&table - tables_.data());
  }

  [[nodiscard]] uint32_t key() const { return memory_.key; }
  // Of a table, bytes into the key's memory.
  [[nodiscard]] uint64_t offset(uint32_t table) const { return bytes_of(table, parts_); }
  [[nodiscard]] peal_part* at(uint32_t table) const {
    return reinterpret_cast<peal_part*>(memory_.address + offset(table));
  }

 private:
  Allocation memory_;
  uint32_t parts_ = 0;  // of a table
  std::vector<Table> tables_;
};

}  // namespace peal::host
