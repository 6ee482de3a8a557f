// SPDX-License-Identifier: BSD-2-Clause
// Rank 1 of 8, unless said otherwise, in operations with tables of parts. What rank a has for rank
// b is as long as the test says; it lies where the table says, backwards and with gaps.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "tests/support/log_lines.h"
#include "tests/unit/card_fixture.h"

namespace peal::test {

class PartsTest : public GroupTest {
 public:
  static constexpr size_t kRoom = (3 * CONFIG_PIECE_WINDOW + 2) * CONFIG_MTU_BYTES;  // of a part

 protected:
  // Bytes of a piece of 8 ranks: what their places in the channel hold, beside a frame.
  static constexpr size_t kPlace =
      std::min<size_t>(CONFIG_CHANNEL_BYTES / (2 * CONFIG_PIECE_WINDOW) / 8, CONFIG_MTU_BYTES) &
      ~size_t{7};
  static constexpr size_t kPiece = kPlace - 24;
  static constexpr size_t kTables = 4;

  explicit PartsTest(peal_operation operation_, bool keeps_early = false, uint32_t sent_packets = 0)
      : PartsTest(operation_, PEAL_ALGORITHM_DIRECT, 8, 1,
                  {.keeps_early = keeps_early, .sent_packets = sent_packets}) {}

  PartsTest(peal_operation operation_, peal_algorithm algorithm_, uint32_t ranks_, uint32_t rank_,
            const BenchOptions& options)
      : GroupTest(ranks_, rank_, with_tables(options)),
        operation(operation_),
        algorithm(algorithm_),
        given(bench.add_memory("given", ranks * kRoom, PEAL_ACCESS_READ)),
        result(bench.add_memory("result", ranks * kRoom)),
        table(bench.add_memory("table", kTables * 2 * 8 * sizeof(peal_part), PEAL_ACCESS_READ)) {
    bench.take_log();
  }

  static BenchOptions with_tables(BenchOptions options) {
    options.tables = true;
    return options;
  }
  [[nodiscard]] bool to_each() const { return operation == PEAL_OPERATION_ALLTOALLV; }
  // Whose block it is: in an allgatherv that for everybody.
  [[nodiscard]] std::pair<uint32_t, uint32_t> name(uint32_t from, uint32_t to) const {
    return {from, to_each() ? to : 0};
  }
  void set_length(uint32_t from, uint32_t to, size_t bytes) { lengths[name(from, to)] = bytes; }
  void set_all(size_t bytes) {
    for (uint32_t from = 0; from < ranks; from++)
      for (uint32_t to = 0; to < ranks; to++) set_length(from, to, bytes);
  }
  [[nodiscard]] size_t length(uint32_t from, uint32_t to) const {
    return lengths.at(name(from, to));
  }
  [[nodiscard]] std::vector<uint8_t> block(uint32_t from, uint32_t to,
                                           uint64_t sequence = 0) const {
    const auto [a, b] = name(from, to);
    return pattern_between(sequence, a, b, 0, length(from, to));
  }
  // Where a rank's part lies in either buffer.
  [[nodiscard]] uint64_t place(uint32_t other) const { return (ranks - 1 - other) * kRoom; }

  [[nodiscard]] OperationShape shape() const { return {operation, algorithm, 0}; }
  // What a rank sends us of a piece.
  [[nodiscard]] Frame from(uint32_t sender, uint32_t piece = 0, uint32_t sequence = 0) const {
    const auto whole = block(sender, rank, sequence);
    const size_t begin = std::min(piece * piece_bytes, whole.size());
    const size_t end = std::min(begin + piece_bytes, whole.size());
    Frame frame = wire.direct(
        sender, shape(), sequence, piece,
        {whole.begin() + static_cast<long>(begin), whole.begin() + static_cast<long>(end)});
    frame.header.block_bytes = static_cast<uint32_t>(whole.size());
    seal(frame);
    return frame;
  }
  // What we send a rank of a piece.
  [[nodiscard]] std::vector<uint8_t> own(uint32_t to, uint32_t piece = 0) const {
    const auto whole = block(rank, to);
    const size_t begin = std::min(piece * piece_bytes, whole.size());
    const size_t end = std::min(begin + piece_bytes, whole.size());
    return {whole.begin() + static_cast<long>(begin), whole.begin() + static_cast<long>(end)};
  }
  void deliver_all(uint32_t piece = 0, uint32_t sequence = 0) {
    for (uint32_t sender = 0; sender < ranks; sender++) {
      if (sender != rank) bench.deliver(from(sender, piece, sequence));
      bench.finish_all_dma();
    }
  }

  [[nodiscard]] std::vector<peal_part> parts(bool in_place) const {
    std::vector<peal_part> parts;
    if (to_each() && !in_place)
      for (uint32_t to = 0; to < ranks; to++) parts.push_back({place(to), length(rank, to)});
    for (uint32_t other = 0; other < ranks; other++)
      parts.push_back({place(other), length(other, rank)});
    return parts;
  }
  void write_table(const std::vector<peal_part>& parts, size_t index = 0) {
    std::memcpy(bench.port.bytes(table.region).data() + index * 2 * 8 * sizeof(peal_part),
                parts.data(), parts.size() * sizeof(peal_part));
  }
  void put(const Memory& memory, uint32_t to, uint64_t sequence) {
    const auto bytes = block(rank, to, sequence);
    std::copy(bytes.begin(), bytes.end(),
              bench.port.bytes(memory.region).begin() + static_cast<long>(place(to)));
  }
  [[nodiscard]] peal_submission entry(uint64_t sequence = 0, bool in_place = false,
                                      size_t index = 0) const {
    peal_submission entry = barrier_entry(member, sequence, 100 + sequence);
    entry.operation = static_cast<uint8_t>(operation);
    entry.algorithm = static_cast<uint8_t>(algorithm);
    entry.flags = in_place ? PEAL_SUBMIT_IN_PLACE : 0;
    entry.receive_key = result.key;
    entry.send_key = in_place ? 0 : given.key;
    entry.send_offset = to_each() || in_place ? 0 : place(rank);
    entry.parts_key = table.key;
    entry.parts_offset = index * 2 * 8 * sizeof(peal_part);
    return entry;
  }
  void post(uint64_t sequence = 0, bool in_place = false, size_t index = 0) {
    for (uint32_t to = 0; to < ranks; to++)
      if (to_each() || to == rank) put(in_place ? result : given, to, sequence);
    write_table(parts(in_place), index);
    bench.submit(entry(sequence, in_place, index));
  }
  void scribble() {
    for (const Memory& memory : {given, result, table}) {
      auto& bytes = bench.port.bytes(memory.region);
      std::fill(bytes.begin(), bytes.end(), uint8_t{0x5c});
    }
  }
  // "rank 3", whose block is wrong in the result, or "".
  [[nodiscard]] std::string wrong(uint64_t sequence = 0) {
    const auto& bytes = bench.port.bytes(result.region);
    for (uint32_t other = 0; other < ranks; other++) {
      const auto expected = block(other, rank, sequence);
      if (!std::equal(expected.begin(), expected.end(),
                      bytes.begin() + static_cast<long>(place(other))))
        return "rank " + std::to_string(other);
    }
    return "";
  }
  std::string ask(uint32_t asker, uint32_t piece = 0, uint64_t fragments = 1) {
    bench.port.take_sent();
    return answer(wire.nack(asker, shape(), 0, piece, rank, 0, fragments));
  }
  [[nodiscard]] uint64_t done() const { return bench.counter(PEAL_COUNTER_OPERATIONS_COMPLETED); }

  peal_operation operation;
  peal_algorithm algorithm;
  size_t piece_bytes = kPiece;
  Memory given;
  Memory result;
  Memory table;
  std::map<std::pair<uint32_t, uint32_t>, size_t> lengths;
};

}  // namespace peal::test
