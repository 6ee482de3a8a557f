// SPDX-License-Identifier: BSD-2-Clause
// A hostile client at the two doors it has: administrative commands (what the socket and the PCI
// mailbox pass on), and its context window, of which it may overwrite everything but the card's
// page. Behind them the real table of regions and the real card; DMA really reaches the regions'
// memory, so a check that is missing is an address-sanitizer report.
#include <algorithm>
#include <deque>
#include <memory>
#include <vector>

#include "emulator/common/admin.h"
#include "emulator/common/mapped_windows.h"
#include "emulator/common/packet_text.h"
#include "emulator/common/region_table.h"
#include "firmware/channels.h"
#include "firmware/payload.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/support/memory_port.h"

namespace peal::test {
namespace {

using emulator::Admin;
using emulator::kContexts;
using emulator::kNoContext;
using emulator::MappedWindows;
using emulator::RegionTable;

constexpr int kEventsMax = 150;
constexpr size_t kGuestBytes = 64 * 1024;

// Packets from the in-memory port; DMA through the region table; completions to the windows.
class AdminPort final : public Port {
 public:
  explicit AdminPort(RegionTable& regions) : regions_(regions) {}
  emulator::Windows* windows = nullptr;
  MemoryPort packets{CONFIG_PACKET_BUFFERS, kPayloadBytes, Checksums::kSoftware};
  std::deque<std::pair<DmaToken, bool>> done;

  Packet* allocate_packet() override { return packets.allocate_packet(); }
  Packet* share_packet(Packet* packet) override { return packets.share_packet(packet); }
  void release_packet(Packet* packet) override { packets.release_packet(packet); }
  void send(Packet* packet, uint32_t engine) override { packets.send(packet, engine); }
  [[nodiscard]] uint32_t packet_buffers() const override { return CONFIG_PACKET_BUFFERS; }
  [[nodiscard]] uint32_t sent_packets() const override { return 0; }
  [[nodiscard]] uint32_t dma_batch() const override { return 1; }
  [[nodiscard]] Checksums checksums() const override { return Checksums::kSoftware; }
  [[nodiscard]] bool dma_read(const DmaTransfer& transfer, DmaToken token) override {
    done.emplace_back(token, regions_.copy_in(transfer.host, transfer.card, transfer.bytes));
    return true;
  }
  [[nodiscard]] bool dma_write(const DmaTransfer& transfer, DmaToken token) override {
    done.emplace_back(token, regions_.copy_out(transfer.card, transfer.host, transfer.bytes));
    return true;
  }
  void complete(ContextId context, const peal_completion& entry) override {
    if (entry.cookie == watched) {
      refused = entry.status != PEAL_STATUS_OK && entry.status != PEAL_STATUS_PEER_DEAD &&
                entry.status != PEAL_STATUS_MISMATCH && entry.status != PEAL_STATUS_DMA_FAULT;
    }
    windows->complete(context, entry);
  }

  uint64_t watched = 0;  // cookie
  bool refused = false;

 private:
  RegionTable& regions_;
};

struct AlignedFree {
  void operator()(void* memory) const { std::free(memory); }
};

// A guest's memory and its windows; at most one window per context, given back when the card says
// so.
class FuzzProvider final : public emulator::MemoryProvider {
 public:
  FuzzProvider(FuzzInput& input, RegionTable& table)
      : input_(input), table_(table), guest_(kGuestBytes) {}

  peal_status open_window(ContextId context, uint64_t* offset) override {
    if (refuses_windows && input_.byte() % 16 == 0) return PEAL_STATUS_NO_RESOURCES;
    windows[context].reset(std::aligned_alloc(PEAL_PAGE_BYTES, emulator::kWindowBytes));
    card_windows->open(context, windows[context].get(), PEAL_CAPABILITY_SHARED_MEMORY, nullptr);
    *offset = 0;
    return PEAL_STATUS_OK;
  }
  void context_gone(ContextId context) override {
    fuzz_require(windows[context] != nullptr, "a context is gone twice");
    windows[context].reset();
  }
  peal_status make_memory(const peal_register_memory& request, RegionId* region) override {
    if (request.kind == PEAL_MEMORY_ALLOCATE) return allocate(request.bytes, region);
    if (request.kind != PEAL_MEMORY_PAGES) return PEAL_STATUS_BAD_ADDRESS;
    emulator::PageList pages;
    pages.page_shift = 12 + request.page_shift % 4;
    pages.first_page_offset = request.first_page_offset;
    for (uint32_t i = input_.byte() % 8; i > 0; i--)
      pages.addresses.push_back(uint64_t{input_.byte()} << 12);
    const emulator::BusWindow bus{guest_.data(), guest_.size()};
    if (!emulator::pages_fit(bus, pages, request.bytes)) return PEAL_STATUS_BAD_ADDRESS;
    *region = table_.put_pages(bus, pages, request.bytes, [] {});
    return *region == emulator::kNoRegion ? PEAL_STATUS_NO_RESOURCES : PEAL_STATUS_OK;
  }
  peal_status make_channels(const peal_reserve_group&, RegionId* region) override {
    return allocate(kChannelsBytes, region);
  }

  bool refuses_windows = false;
  MappedWindows* card_windows = nullptr;
  std::unique_ptr<void, AlignedFree> windows[kContexts];

 private:
  peal_status allocate(uint64_t bytes, RegionId* region) {
    if (bytes == 0 || bytes > 1024 * 1024) return PEAL_STATUS_NO_RESOURCES;
    auto* memory = new uint8_t[bytes]();
    *region = table_.put_mapped(memory, bytes, [memory] { delete[] memory; });
    return *region == emulator::kNoRegion ? PEAL_STATUS_NO_RESOURCES : PEAL_STATUS_OK;
  }

  FuzzInput& input_;
  RegionTable& table_;
  std::vector<uint8_t> guest_;
};

struct CardFree {
  void operator()(void* memory) const {
    ::operator delete (memory, std::align_val_t{card_alignment()});
  }
};

class AdminFuzz {
 public:
  explicit AdminFuzz(FuzzInput& input)
      : input_(input),
        regions_(emulator::kRegionsPerCard),
        provider_(input, regions_),
        port_(regions_),
        memory_(::operator new (card_bytes(), std::align_val_t{card_alignment()})) {
    std::memset(memory_.get(), 0, card_bytes());
    CardIdentity identity{};
    emulator::card_mac(0, identity.mac);
    identity.incarnation = 1;
    card_ = card_start(memory_.get(), port_, identity, default_timeouts());
    windows_ = std::make_unique<MappedWindows>(*card_);
    admin_ = std::make_unique<Admin>(*card_, regions_, *windows_);
    port_.windows = provider_.card_windows = windows_.get();
  }

  void run() {
    good_start();
    provider_.refuses_windows = true;
    for (int i = 0; i < kEventsMax && !input_.empty(); i++) {
      event();
      turn();
    }
    // Every client leaves: everything it left behind is let go of.
    for (ContextId context = 0; context < kContexts; context++) {
      if (admin_->is_open(context)) admin_->close_context(context, now_);
    }
    for (int i = 0; i < 200; i++) {
      turn();
      now_ += 100'000'000;
    }
    fuzz_require(admin_->open_contexts() == 0 && admin_->closing_contexts() == 0,
                 "a context that is closed never became quiet");
    fuzz_require(port_.packets.problems().empty(), port_.packets.problems());
    fuzz_require(port_.packets.packets_in_use() == card_holds(*card_).packets, "packets leaked");
  }

 private:
  // A context, a buffer and a group of one, so that the rest has something to break.
  void good_start() {
    peal_admin_command command = envelope(PEAL_ADMIN_OPEN_CONTEXT);
    execute_well(command, kNoContext);
    context_ = last_.u.open.context;
    command = envelope(PEAL_ADMIN_REGISTER_MEMORY);
    command.u.register_memory = {PEAL_MEMORY_ALLOCATE, PEAL_ACCESS_FLAGS, 0, 8192, 0, 0};
    execute_well(command, context_);
    key_ = last_.u.register_memory.key;
    command = envelope(PEAL_ADMIN_RESERVE_GROUP);
    command.u.reserve.ranks = 1;
    execute_well(command, context_);
    member_ = last_member_ = last_.u.reserve.address.member;
    command = envelope(PEAL_ADMIN_CONNECT_GROUP);
    command.u.connect.member = member_;
    command.u.connect.group = 5;
    execute_well(command, context_);
  }

  void execute_well(const peal_admin_command& command, ContextId context) {
    execute(command, PEAL_ADMIN_BYTES, context);
    fuzz_require(last_.status == PEAL_STATUS_OK, "a good start is refused");
  }

  static peal_admin_command envelope(uint16_t opcode) {
    peal_admin_command command{};
    command.version = PEAL_ABI_VERSION;
    command.opcode = opcode;
    command.bytes = PEAL_ADMIN_BYTES;
    return command;
  }

  void execute(const peal_admin_command& command, uint32_t bytes, ContextId context) {
    const peal_status status = admin_->execute(command, bytes, context, provider_, now_, &last_);
    fuzz_require(last_.status == static_cast<uint32_t>(status) && last_.status < PEAL_STATUS_COUNT,
                 "the reply has another status, or one that is none");
    fuzz_require(last_.bytes == PEAL_ADMIN_BYTES && last_.tag == command.tag,
                 "the reply is malformed");
  }

  void event() {
    switch (input_.byte() % 8) {
      case 0:
        execute(input_.take<peal_admin_command>(), PEAL_ADMIN_BYTES, any_context());
        break;
      case 1:
      case 2:
        made_command();
        break;
      case 3:
        submit();
        break;
      case 4:
        scribble();
        break;
      case 5:
        now_ += TimeNs{input_.byte()} * 1'000'000;
        break;
      case 6:
        windows_->set_card_sleeping(input_.byte() % 2 != 0);
        break;
      default:
        windows_->beat(input_.byte(), 1000);
    }
  }

  ContextId any_context() {
    const uint8_t choice = input_.byte();
    if (choice % 4 != 0) return context_;
    return choice % 8 == 0 ? kNoContext : choice % (kContexts + 2);
  }

  void made_command() {
    peal_admin_command command =
        envelope(static_cast<uint16_t>(input_.byte() % (PEAL_ADMIN_OPCODE_COUNT + 1)));
    switch (command.opcode) {
      case PEAL_ADMIN_REGISTER_MEMORY:
        command.u.register_memory = {1 + input_.byte() % 3u,
                                     1 + input_.byte() % 3u,
                                     input_.take<uint64_t>(),
                                     input_.take<uint16_t>(),
                                     0,
                                     0};
        // Only pages have a size.
        if (command.u.register_memory.kind == PEAL_MEMORY_PAGES)
          command.u.register_memory.page_shift = 12;
        break;
      case PEAL_ADMIN_UNREGISTER_MEMORY:
        command.u.unregister_memory.key = key_;
        break;
      case PEAL_ADMIN_RESERVE_GROUP:
        command.u.reserve.ranks = 1 + input_.byte() % 4;
        command.u.reserve.rank = input_.byte() % 4;
        break;
      case PEAL_ADMIN_CONNECT_GROUP:
        command.u.connect.member = last_member_;
        command.u.connect.group = input_.byte();
        command.u.connect.peer_count = input_.byte() % 6;
        for (uint16_t i = 0; i < 4; i++) command.u.connect.peers[i].rank = input_.byte() % 4;
        break;
      case PEAL_ADMIN_ABANDON_GROUP:
        command.u.abandon.member = last_member_;
        break;
      case PEAL_ADMIN_READ_COUNTERS:
        command.u.counters.first = input_.byte();
        break;
      case PEAL_ADMIN_ADD_PEERS:
        command.u.add_peers.member = last_member_;
        command.u.add_peers.peer_count = input_.byte() % (PEAL_PEERS_MAX + 2);
        for (peal_peer_address& peer : command.u.add_peers.peers) peer.rank = input_.byte() % 4;
        break;
      case PEAL_ADMIN_COMMIT_PROGRAM:
        command.u.commit_program = made_program();
        break;
      case PEAL_ADMIN_FREE_PROGRAM:
        command.u.free_program.program = program_;
        break;
      default:
        break;
    }
    if (input_.byte() % 3 == 0) input_.spoil(&command, sizeof(command));
    const uint32_t bytes = input_.byte() % 16 == 0 ? input_.take<uint16_t>() : PEAL_ADMIN_BYTES;
    const ContextId context =
        command.opcode == PEAL_ADMIN_OPEN_CONTEXT ? kNoContext : any_context();
    execute(command, bytes, context);
    if (last_.status != PEAL_STATUS_OK) return;
    if (last_.opcode == PEAL_ADMIN_REGISTER_MEMORY) key_ = last_.u.register_memory.key;
    if (last_.opcode == PEAL_ADMIN_RESERVE_GROUP) last_member_ = last_.u.reserve.address.member;
    if (last_.opcode == PEAL_ADMIN_OPEN_CONTEXT) context_ = last_.u.open.context;
    if (last_.opcode == PEAL_ADMIN_COMMIT_PROGRAM) program_ = last_.u.commit_program.program;
  }

  // A commitment that is good where its memory and its member are; nothing is read before a start.
  peal_commit_program made_program() {
    peal_commit_program program{};
    program.offset = input_.byte() % 8 * 64u;
    program.key = key_;
    program.member = input_.byte() % 4 != 0 ? member_ : last_member_;
    program.count = 2 + input_.byte() % 8;
    program.counters = input_.byte() % 4;
    program.name = input_.byte();
    program.mode = static_cast<uint8_t>(1 + input_.byte() % 2);
    return program;
  }

  uint8_t* window() {
    return context_ < kContexts ? static_cast<uint8_t*>(provider_.windows[context_].get())
                                : nullptr;
  }

  void submit() {
    if (window() == nullptr) return;
    peal_host_ring ring{};
    peal_host_ring_init(&ring, window(), emulator::kRingEntries);
    ring.submission_tail = ring.host->indices.submission_tail;
    ring.completion_head = ring.host->indices.completion_head;
    peal_submission entry{};
    entry.operation = PEAL_OPERATION_ALLGATHER;
    entry.algorithm = static_cast<uint8_t>(2 + input_.byte() % 2);
    entry.member = member_;
    entry.sequence = sequence_;
    entry.cookie = ++cookie_;
    entry.block_bytes = input_.take<uint16_t>() % 9000;
    entry.send_offset = input_.byte();
    entry.receive_offset = input_.byte() * 8u;
    entry.send_key = entry.receive_key = key_;
    if (input_.byte() % 4 == 0) input_.spoil(&entry, sizeof(entry));
    const bool submitted = peal_host_ring_submit(&ring, &entry) != 0;
    ring.host->indices.completion_head += input_.byte() % 2;
    if (!submitted) return;
    // (Which may end the context, and with it the window.)
    port_.watched = entry.cookie;
    port_.refused = false;
    turn();
    if (!port_.refused && entry.member == member_) sequence_++;
  }

  // Anywhere but the card's own page.
  void scribble() {
    if (window() == nullptr) return;
    const bool lines = input_.byte() % 2 != 0;
    const size_t from = PEAL_WINDOW_HOST_PAGE;
    const size_t bytes = lines ? 4 * PEAL_CACHE_LINE_BYTES : emulator::kWindowBytes - from;
    input_.spoil(window() + from, bytes);
  }

  void turn() {
    windows_->poll(1 + input_.byte() % 8, now_);
    for (size_t count = port_.done.size(); count > 0; count--) {
      const auto [token, ok] = port_.done.front();
      port_.done.pop_front();
      card_on_dma_done(*card_, token, ok, now_);
    }
    if (card_next_deadline(*card_) <= now_) card_on_timer(*card_, now_);
    port_.packets.take_sent();
    port_.packets.take_log();
    windows_->flush();
    admin_->housekeeping();
  }

  FuzzInput& input_;
  RegionTable regions_;
  FuzzProvider provider_;
  AdminPort port_;
  std::unique_ptr<void, CardFree> memory_;
  Card* card_ = nullptr;
  std::unique_ptr<MappedWindows> windows_;
  std::unique_ptr<Admin> admin_;
  peal_admin_reply last_{};
  ContextId context_ = 0;
  uint32_t key_ = 0;
  uint32_t member_ = 0;
  uint32_t last_member_ = 0;
  uint32_t program_ = 0;
  uint64_t sequence_ = 0;  // of the next operation of `member_`
  uint64_t cookie_ = 0;
  TimeNs now_ = 1'000'000;
};

}  // namespace
}  // namespace peal::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  peal::test::FuzzInput input(data, bytes);
  peal::test::AdminFuzz(input).run();
  return 0;
}
