// SPDX-License-Identifier: BSD-2-Clause
// The buffers of one member as its user treats them: filled with a pattern that tells whose block
// it is, for whom, operation and offset; compared at completion; overwritten with garbage at once,
// because they are the user's again; and looked at once more later, because nobody may have touched
// the garbage.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emulator/cluster/blocks.h"
#include "emulator/cluster/scenario.h"

namespace peal::sim {

// Whose data: equal for the ranks of a group, different for everybody else.
struct PatternSource {
  uint64_t seed = 0;
  uint32_t group = 0;
};

class UserMemory {
 public:
  struct Shape {
    uint32_t ranks;
    uint32_t rank;
    uint32_t slots;     // operations under way at once
    uint64_t send_max;  // bytes of the longest operation's buffers
    uint64_t receive_max;
  };

  UserMemory() = default;
  UserMemory(PatternSource source, const Shape& shape);

  [[nodiscard]] uint64_t send_bytes() const { return send_stride_ * shape_.slots; }
  [[nodiscard]] uint64_t receive_bytes() const { return receive_stride_ * shape_.slots; }
  // The two regions, of the sizes above.
  void place(uint32_t send_region, uint8_t* send, uint32_t receive_region, uint8_t* receive);
  // And that of the tables of parts, which the hosts write: one for each slot, so many bytes apart.
  void place_tables(uint32_t region, uint64_t stride);

  // Makes a free slot ready for the operation;
  // empty, or how the slot's garbage was touched meanwhile.
  std::string prepare(uint32_t slot, uint64_t sequence, const OperationPlan& operation);
  // Where prepare() put the blocks.
  [[nodiscard]] uint64_t send_offset(uint32_t slot) const;
  [[nodiscard]] uint64_t receive_offset(uint32_t slot) const;
  // The slot's operation is over: compares the result when there is one, then overwrites
  // everything. Empty, or what is wrong.
  std::string finish(uint32_t slot, bool has_result);
  // Empty, or how the garbage of a free slot was touched.
  [[nodiscard]] std::string check_garbage(uint32_t slot) const;
  // Empty when the card may read or write these bytes of the member's region now, else why not.
  [[nodiscard]] std::string check_access(uint32_t region, uint64_t offset, uint64_t bytes,
                                         bool write) const;
  // Whether buffers lie there.
  [[nodiscard]] bool owns(uint32_t region) const {
    return region == send_region_ || region == receive_region_;
  }

 private:
  struct Slot {
    bool posted = false;
    bool used = false;     // holds garbage to be found again
    uint64_t garbage = 0;  // seed of it
    uint64_t sequence = 0;
    uint64_t shift = 0;  // where in the slot the buffers begin
    OperationPlan operation;
  };

  [[nodiscard]] Blocks blocks(const Slot& slot) const {
    return {slot.operation, shape_.ranks, shape_.rank};
  }
  [[nodiscard]] uint64_t sequence_base(uint64_t sequence) const;
  [[nodiscard]] uint64_t block_base(uint64_t sequence, const BlockName& name) const;
  void write_garbage(uint32_t index);
  [[nodiscard]] std::string check_result(uint32_t index) const;
  [[nodiscard]] std::string check_surroundings(uint32_t index) const;
  [[nodiscard]] std::string check_table_access(uint64_t offset, uint64_t bytes, bool write) const;
  [[nodiscard]] std::string describe(const Slot& slot, uint64_t offset, uint64_t found) const;

  PatternSource source_;
  Shape shape_{};
  uint64_t send_stride_ = 0;
  uint64_t receive_stride_ = 0;
  uint32_t send_region_ = ~0u;
  uint32_t receive_region_ = ~0u;
  uint32_t tables_region_ = ~0u;
  uint64_t table_stride_ = 0;
  uint8_t* send_ = nullptr;
  uint8_t* receive_ = nullptr;
  uint64_t generation_ = 0;
  std::vector<Slot> slots_;
};

}  // namespace peal::sim
