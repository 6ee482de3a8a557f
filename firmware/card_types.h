// SPDX-License-Identifier: BSD-2-Clause
// Everything a card knows, in one object of fixed size. Only data; what happens to it is in the
// file named after the noun. A zeroed object is an unused one. budget/memory_budget.h adds the
// parts up.
#pragma once

#include <cstdint>
#include <type_traits>

#include "abi/counters.h"
#include "abi/queue.h"
#include "abi/wire.h"
#include "firmware/base/assert.h"
#include "firmware/base/pace.h"
#include "firmware/base/patience.h"
#include "firmware/base/ranks.h"
#include "firmware/base/timer_heap.h"
#include "firmware/p2p_types.h"
#include "firmware/port.h"
#include "firmware/queue_types.h"
#include "firmware/timeouts.h"
#include "peal_config.h"

namespace peal {

constexpr uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

inline constexpr uint32_t kChannels = CONFIG_CHANNELS;       // K
inline constexpr uint32_t kEpochOperations = kChannels / 2;  // operations recycled together
// What the cards of a group take for the proof of an epoch's end (group/recycling.h). Another
// number where that is changed: they must agree.
inline constexpr uint32_t kRecyclingRule = 79;
// The same for what is told of starts that fail (queue/failed.h).
inline constexpr uint32_t kFailureRule = 92;
// An ACK that asks is answered by one that says so (0046); "not yet" may say how patient its sender
// is (0084); how much was sent is said in 16 bits (0093).
inline constexpr uint32_t kAnswerRule = 93;
// A question may name blocks of several pieces (0058).
inline constexpr uint32_t kQuestionRule = 58;
// A broadcast's piece has 128 KiB at most (0067).
inline constexpr uint32_t kPieceRule = 67;
inline constexpr uint32_t kPieceWindow = CONFIG_PIECE_WINDOW;  // W: pieces open ahead
inline constexpr uint32_t kPieceSlots =
    2 * kPieceWindow;  // a peer may be W ahead of us, and we W ahead of it
inline constexpr uint32_t kImageBytes = CONFIG_CHANNEL_BYTES / kPieceSlots;
inline constexpr uint32_t kRoundsMax = ceil_log2(CONFIG_GROUP_RANKS_MAX);
inline constexpr uint32_t kPeersMax = 2 * kRoundsMax;
// The largest group of an algorithm whose records have a bit for each rank, and its images a block;
// and of one whose images alone have (counts of blocks have 16 bits).
inline constexpr uint32_t kVectorRanks = least(CONFIG_GROUP_RANKS_MAX, 1024);
inline constexpr uint32_t kImageRanks =
    least(least(CONFIG_GROUP_RANKS_MAX, kImageBytes / 8), 1u << 15);
inline constexpr uint32_t kRankWords = (kVectorRanks + 63) / 64;
// A piece needs a bit per rank (hopping), or a word of fragment bits per step (stepping).
inline constexpr uint32_t kPieceWords = kRankWords > kRoundsMax ? kRankWords : kRoundsMax;
// What an algorithm may keep of its own in an operation's record, and in each of its pieces: see
// operation/algorithm.h.
inline constexpr uint32_t kOperationStateBytes = 32;
inline constexpr uint32_t kPieceStateBytes = 16 + 16 * kRankWords;
// Addresses of ranks that are no peers: read, and remembered, in runs of neighbours.
inline constexpr uint32_t kAddressRun = 8;
inline constexpr uint32_t kAddressRuns = CONFIG_REMEMBERED_ADDRESSES / kAddressRun;
inline constexpr uint32_t kAddressWaits = 16;  // packets that wait for an address
inline constexpr uint32_t kRemoteWatches = 4;  // ranks that are no peers, and owe us something
inline constexpr uint32_t kGroupWords = (CONFIG_GROUP_RANKS_MAX + 63) / 64;
// Tables of parts (operation/parts.h). A group of more ranks has no operations with such: the
// card would not remember all addresses, or their places in the channel not hold a frame
// (operation/frame.h) and a word.
inline constexpr uint32_t kPartPlaceBytes = 32;
inline constexpr uint32_t kPartRanks = least(
    least(CONFIG_REMEMBERED_ADDRESSES, CONFIG_GROUP_RANKS_MAX), kImageBytes / kPartPlaceBytes);
// Ranks of an exchange in which everybody sends to everybody (struct Pair): the card would not
// remember the addresses of more.
inline constexpr uint32_t kPairRanks = least(CONFIG_REMEMBERED_ADDRESSES, kVectorRanks);
inline constexpr uint32_t kPairWords = (kPairRanks + 63) / 64;
inline constexpr uint32_t kPairRounds = ceil_log2(kPairRanks);
// Blocks for all that stay for who has not got them (group/at_hand.h): this share of all packets,
// in so many lists.
inline constexpr uint32_t kAtHandShare = 16;
inline constexpr uint32_t kAtHandRecords =
    CONFIG_PACKET_BUFFERS < kAtHandShare ? 1 : CONFIG_PACKET_BUFFERS / kAtHandShare;
inline constexpr uint32_t kAtHandLists = 64;
inline constexpr uint32_t kStagingUnits = 32;
inline constexpr uint32_t kStagingUnitBytes = CONFIG_STAGING_BYTES / kStagingUnits;
// Half of them are the most that one client can have (has_tombstone_place): two for every member.
inline constexpr uint32_t kTombstones = 4 * CONFIG_CARD_MEMBERS;
inline constexpr uint32_t kTimers =
    CONFIG_CARD_MEMBERS * (kChannels + 1) + 1 + CONFIG_CONNECTIONS + 4;

static_assert(kChannels % 2 == 0 && kChannels >= 4);
static_assert(CONFIG_GROUP_RANKS_MAX <= PEAL_RANKS_MAX && kPeersMax <= PEAL_PEERS_MAX);
static_assert(CONFIG_PARKED_OPERATIONS >= CONFIG_CHANNELS,
              "a host may have PARKED_OPERATIONS outstanding, and never be refused");
static_assert(kImageRanks >= kVectorRanks, "a piece would be empty at the largest N");
static_assert(kImageBytes / 2 / CONFIG_MTU_BYTES + 1 <= 64,
              "fragments of a step must fit one word");
static_assert(CONFIG_MTU_BYTES >= sizeof(peal_nack));
static_assert(CONFIG_REMEMBERED_ADDRESSES % kAddressRun == 0);

struct MemoryKey {
  bool in_use;
  uint16_t generation;
  uint16_t access;
  uint16_t uses;  // accepted operations that name it, members whose table of addresses it is
  ContextId context;
  RegionId region;
  uint64_t bytes;
};

enum class ContextPhase : uint8_t { kFree, kOpen, kClosing };

struct Context {
  ContextPhase phase;
  ClientId client;
  uint32_t outstanding;  // accepted, not completed
};

struct Peer {
  peal_peer_address address;
  uint32_t identity;        // that its packets must carry
  TimeNs awaited_since_ns;  // 0: owes us nothing
  TimeNs next_probe_ns;
  uint16_t probes;
  uint16_t sent;         // packets of this edge, modulo 65,536 (wire/edge.h)
  uint16_t heard;        // the last one that came
  uint8_t known_by;      // the entry that keeps what is known of it (ranks.h, peer_entry())
  uint8_t looked_at;     // sent, modulo 256, when it was last looked whether promises were kept
  TimeNs complete_ns;    // when it last said that all it had sent has come
  uint64_t gaps_before;  // epoch; of earlier ones something may be lost that was not asked for
};

// Who a member is, to its peers. A tombstone keeps this much.
struct Membership {
  uint64_t group;
  uint32_t handle;
  uint32_t identity;  // that our packets carry
  uint32_t seed;      // of every signature: group, choice of algorithms, geometry
  uint32_t ranks;
  uint16_t rank;
  uint16_t dead_rank;  // where it is poisoned
  bool poisoned;       // a member died, and nothing can be completed any more
  bool losses;         // packets were lost, as questions say to those who do not know it
  uint8_t rounds;      // ⌈log2 N⌉
  uint8_t added;       // peers that were told before connect group, behind those that it tells
  // What all headers that it sends have in common; else zero.
  alignas(16) peal_wire_header pattern;
  Peer peers[kPeersMax];
};

enum class RunPhase : uint8_t { kEmpty, kReading, kKnown };

// Which neighbouring ranks a place for addresses has, as the host's table has them.
struct AddressRun {
  RunPhase phase;
  uint16_t number;  // of the run: its first rank is kAddressRun times that
};

// A packet that waits for the address of a rank: its sender's, or the one it is for.
struct AddressWait {
  Packet* packet;  // held; null: no packet
  uint16_t rank;
  bool leaves;
};

// A rank that owes us something and is no peer (group/liveness.h).
struct RemoteWatch {
  TimeNs awaited_since_ns;  // 0: nobody
  TimeNs wanted_ns;         // when somebody last said that it owes
  TimeNs next_probe_ns;
  uint32_t probes;
  uint16_t rank;
};

// Ranks that are no peers (group/remote.h).
struct Remote {
  uint32_t key;  // of the table; 0: none
  HostAddress table;
  AddressRun runs[kAddressRuns];
  AddressWait waits[kAddressWaits];
  RemoteWatch watches[kRemoteWatches];
  // Those that are no peers, owe us something, and have no place there yet: a bit each.
  uint64_t wanted[kGroupWords];
  TimeNs wanted_ns;  // when somebody last said that one of them owes
  TimeNs turn_ns;    // when the next ones may have a place
  uint16_t waiting;  // how many they are
  uint16_t turn;     // who got one last
};

// By what it is known that everybody has finished an epoch (group/recycling.h).
enum class EpochProof : uint8_t {
  kSignals,    // signals of its own
  kOperation,  // one of the next epoch: as one of this has proved the epoch before
  kAsked,      // signals, because somebody needs them
};

// A dissemination (Hensgen, Finkel, Manber): round k signals rank + 2^k and waits for rank - 2^k.
// Used by barrier and destroy. One bit per round, because a fast peer may already be a round ahead.
struct Dissemination {
  uint32_t missing;  // that this member enters, and above that bit the signal of each round
  uint32_t unsent;   // signals, a bit per round
};

// Whether all ranks have finished an epoch, as a member knows it (group/recycling_tree.h).
struct EpochTree {
  uint32_t missing;  // that this member has, and above that bit those below, by their hops
  uint16_t root;     // or kNoTree
  bool told;         // the one above: that all from here down have
  bool split;        // others had another tree
  uint8_t asked;     // for what could not be said yet: a bit for each PEAL_RECYCLE_*
};
inline constexpr uint16_t kNoTree = 0xffff;  // neither finished it nor heard of it yet

// A rank's own block of a piece.
enum class OwnBlock : uint8_t {
  kUnread,
  kReading,
  kPlaced,  // in the image, or on its way to the peers
};

// The result of a piece.
enum class Delivery : uint8_t {
  kGathering,
  kDelivering,
  kDelivered,  // in the user's memory
};

struct Piece {
  uint32_t number;  // which piece this slot holds, plus one; 0: none yet
  uint16_t arrived;
  uint16_t dma;  // outstanding, into or out of this piece
  OwnBlock own;
  Delivery delivery;
  bool retained;         // what late NACKs may ask for lies in the channel
  uint16_t early_first;  // packets that wait (group/early.h): index plus one
  uint16_t early_last;
  uint16_t waiting;                            // so many
  alignas(8) uint8_t state[kPieceStateBytes];  // the algorithm's own
  uint64_t bits[kPieceWords];
};

// A bit for each of the 2W pieces that two ranks may be at.
using PieceBits = std::conditional_t<(kPieceSlots > 8), uint16_t, uint8_t>;

// What has become of the blocks that two ranks have for each other, where they go straight from one
// to the other (collective/direct_pair.h). The lowest bit is of the piece `base`.
struct Pair {
  uint32_t base;     // first piece that is not over between the two
  uint32_t pieces;   // so many they exchange; all ones until the table of parts has come
  PieceBits begun;   // own blocks: they are being sent
  PieceBits kept;    // they are sent and, where they must, lie in the channel
  PieceBits come;    // the other's blocks
  PieceBits waits;   // of these: wait in their packets, or are on their way to or from the channel
  PieceBits stored;  // or lie there
  PieceBits lost;    // of those that have not come: they were sent
  bool asked : 1;    // for these, at once
  bool shown : 1;    // and the gap on the other's edge has shown the same since
};

// Pairs of an operation are counted by their way: that with index i is the one with rank + i, the
// first that of the rank with itself.
// Behind it lie as many pairs as the group has ranks (group/by_rank.h).
struct Pairs {
  uint64_t ready[kPairWords];   // of which an own block may be sent now
  uint64_t stored[kPairWords];  // that have one in the channel
  uint32_t passed;              // from here on blocks of one piece that have not come are lost

  // By their way; alignof(Pair) divides the size of this.
  [[nodiscard]] Pair* of() { return reinterpret_cast<Pair*>(this + 1); }
  [[nodiscard]] const Pair* of() const { return reinterpret_cast<const Pair*>(this + 1); }
};
static_assert(sizeof(Pairs) % alignof(Pair) == 0);

// What a member keeps of each rank, in bytes: of a group of so many. Side by side, so that a small
// group touches few pages (group/by_rank.h).
constexpr size_t address_bytes(uint32_t ranks) {
  const uint32_t runs = (ranks + kAddressRun - 1) / kAddressRun;
  return size_t{least(runs, kAddressRuns)} * kAddressRun * sizeof(peal_peer_address);
}
constexpr size_t part_table_bytes(uint32_t ranks) {
  return 2 * size_t{least(ranks, kPartRanks)} * sizeof(peal_part);
}
constexpr size_t pairs_bytes(uint32_t ranks) {
  const size_t bytes = sizeof(Pairs) + least(ranks, kPairRanks) * sizeof(Pair);
  return (bytes + alignof(Pairs) - 1) / alignof(Pairs) * alignof(Pairs);
}
inline constexpr size_t kByRankBytes =
    address_bytes(CONFIG_GROUP_RANKS_MAX) +
    CONFIG_PART_TABLES * part_table_bytes(CONFIG_GROUP_RANKS_MAX) +
    kChannels * pairs_bytes(CONFIG_GROUP_RANKS_MAX);

// What one step of an exchange in steps sends: its blocks gather one behind the other, in a packet
// that stays or in the channel. And what comes in it.
struct StepLog {
  Packet* packet;   // null: in the channel
  uint16_t bytes;   // so far
  uint16_t writes;  // into the channel, under way
  uint16_t come;    // bytes that came
  uint16_t taken;   // of these, that are where they go on
};

// An exchange in which short blocks go in steps (collective/alltoallv/bruck_steps.h). Bits are
// steps.
struct Steps {
  uint32_t come;    // the packet is here
  uint32_t stored;  // it lies in the channel
  uint32_t taken;   // all of its blocks are where they go on
  uint16_t most;    // bytes of a short block
  uint8_t begun;    // logs that are there
  uint8_t sent;     // steps
  bool stay;        // all logs are packets
  bool over;
  uint16_t own_next;   // the rank whose own block is read next
  uint16_t own_reads;  // under way
  StepLog logs[kPairRounds];
  uint64_t final[kPairWords];  // ranks whose block has come, or that it comes directly
};

// Copies blocks of an image that lies in the channel to the user's buffer, through bounce packets.
struct Mover {
  bool active;
  uint8_t in_flight;
  uint16_t next;  // position of the next block to look at
  uint32_t piece;
  uint32_t landing;  // DMA that brings early data into the channel
};

enum class OperationPhase : uint8_t {
  kFree,
  kFinished,  // over for the host; kept for late NACKs until recycled
  // Open, from here on:
  kEarly,    // made by a packet or a NACK; the host has not posted
  kRunning,  // posted
};

// Whom a look at what is missing may ask.
enum class Asking : uint8_t {
  kAnybody,
  kNobody,    // no question is due: peers that owe something are watched, that is all
  kSuspects,  // only those of whom it is known that something is lost
};

// How often the one whose answer is timed was asked since it began: which question the answer to
// several is of nobody knows (Karn and Partridge, "Improving Round-Trip Time Estimates").
enum class Timed : uint8_t { kNot, kOnce, kAgain };

// What is missing is asked for when it has not come for a while (group/inquiry.h).
struct Inquiry {
  TimeNs heard_ns;           // last arrival, or when the wait began
  TimeNs from_ns;            // when the present interval began
  TimeNs interval_ns;        // between questions
  TimeNs longest_ns;         // longest wait that ended by itself
  TimeNs doubt_at_ns;        // when those in doubt are asked again
  TimeNs doubt_ns;           // how long that was
  TimeNs promised_until_ns;  // whoever said "not yet" is not asked again before
  TimeNs timed_ns;           // when the one was asked whose answer is timed
  uint32_t promised;         // bit per peer entry
  uint32_t doubts;           // something of theirs is lost, and the question unanswered
  uint32_t gaps;             // a gap said so (not an answer that it was sent)
  uint32_t held;             // they have answered that they cannot send all of it again now
  uint32_t suspects;         // for Asking::kSuspects
  uint32_t seemed_late;      // what they owe did, when they were last asked
  uint32_t certain;          // last asked whatever patience said: the answer teaches nothing
  uint16_t timed_rank;
  Timed timed;
  Asking asking;
  uint8_t turn;          // of those that may be asked, where one at a time is
  uint8_t owing;         // so many there are in this look
  uint8_t owing_before;  // and were in the one before
  bool disturbed;  // since the last arrival something below has changed, or the interval grown
  bool asked;      // since the last arrival
  bool told_late;  // whoever is waited for has not come yet: nothing is lost
  bool ever_asked;
  bool asked_suspect;
  bool repeats;    // to suspects: because they have not answered
  bool first;      // this look's questions are a silence's first, and the next are far away
  bool hurried;    // the next look is one that somebody else's question has caused
  bool hastened;   // since the last arrival there was such a look
  bool all_begun;  // nobody is late for it, most likely: somebody is over with it
  bool all_sent;  // what shows the loss is no packet of this operation: what it lacks is not on its
                  // way behind that
};

// A packet whose block has no place in the user's memory yet (group/early.h).
struct EarlyPacket {
  Packet* packet;  // held; null: none
  uint16_t next;   // the piece's list: index plus one; free list: as DmaRecord's
  uint16_t origin;
};

// A piece of the one block that all get, which some have not got (group/at_hand.h).
struct AtHand {
  Packet* packet;  // held
  uint32_t owner;  // whose it is: member and operation
  uint32_t number;
  uint32_t payload_crc;
  uint16_t lacking;  // so many ranks
  uint16_t next;     // its list: index plus one; free list: as DmaRecord's
};

// What was sent and may be asked for, in its packet (group/sent_blocks.h).
struct SentBlock {
  Packet* packet;  // held
  uint32_t number;
  uint16_t part;  // the way of who got it, or a broadcast's fragment
  uint16_t next;  // its operation's list: index plus one; free list: as DmaRecord's
};

struct Algorithm;  // operation/algorithm.h

struct Command {
  uint8_t operation;  // enum peal_operation
  bool in_place;
  const Algorithm* algorithm;
  uint64_t sequence;
  uint64_t cookie;
  uint32_t block_bytes;
  uint16_t root;
  uint32_t send_key;  // that it holds, from its acceptance to its completion; 0: none
  uint32_t receive_key;
  uint32_t parts_key;
  uint16_t parts;  // in the table; 0: the operation has none
  HostAddress send;
  HostAddress receive;
  HostAddress table;  // of parts
  TimeNs accepted_ns;
};

// What an operation knows of its table.
enum class PartsPhase : uint8_t {
  kNone,  // it has no table, or no place for it yet
  kReading,
  kStopped,  // there was no DMA record for the rest
  kKnown,
};

// The record of one operation: what all have, then pieces for those that use them, then the
// algorithm's own.
// Who sends packets of an operation without having heard any.
enum class Begins : uint8_t { kAnother, kSelf, kEverybody };

struct alignas(64) Operation {
  OperationPhase phase;
  bool starved;  // something could not be had from a pool: try again soon
  bool in_debt;  // some piece owes blocks to ranks below
  bool in_turn;  // it was starved, and its timer has its turn
  // Its record is in use, nobody refused it, and its group lives: then a packet like its pattern is
  // its own.
  bool listens;
  Begins begins;
  bool short_image;  // it has one piece, whose image is short
  const Algorithm* algorithm;
  alignas(16) peal_wire_header pattern;  // what all headers of it have in common (wire/transmit.h)
  uint32_t signature;
  uint32_t block_bytes;
  uint16_t root;          // 0 where there is none
  uint16_t first_sender;  // whose packet opened an early record
  // Not OK: refused. A posted operation ends with it as soon as no DMA is under way.
  peal_status verdict;
  uint32_t verdict_rank;
  uint8_t next_ended;  // slot of the member's operation that ended after this one, plus one
  uint64_t sequence;
  Command command;  // valid when posted
  Inquiry inquiry;
  Timer timer;
  uint32_t dma;          // outstanding, all kinds but repairs
  uint32_t piece_count;  // at least 1, of what has pieces
  uint32_t piece_bytes;
  uint32_t base;          // first piece that is not done
  uint32_t own_next;      // next own piece to send
  uint32_t staging_mask;  // units that are its own; 0: none
  uint8_t staging_unit;   // first of them
  uint8_t parts_place;    // of the member's, for its table
  // Zero when opened, by one store.
  bool staging_answers;  // late questions, from what has gathered: stays as long as there is room
  PartsPhase parts_phase;
  uint16_t parts_read;     // how many have been asked for
  uint32_t early_count;    // packets that wait, of all its pieces
  uint16_t at_hand_count;  // own pieces that were read and stay, of all
  uint16_t sent_first;     // blocks that were sent and stay: index of the first, plus one
  Mover mover;
  alignas(8) uint8_t state[kOperationStateBytes];  // the algorithm's own
  Piece pieces[kPieceSlots];
};

enum class MemberPhase : uint8_t {
  kFree,
  kReserved,
  kActive,
  // Over for host and peers; the slot is needed until the last DMA, a repair that somebody asked
  // for, is done. Packets no longer find the member: a tombstone speaks for it.
  kDying,
};

// What the end of the entry point still has to do for a member (operation/settle.h).
struct Unsettled {
  bool listed;
  bool failing;   // poisoned: everything that runs must end
  bool leaving;   // its host is gone or has given it up: buried when nothing can be ended
  uint8_t ended;  // slot of the first operation that ended, plus one
  uint8_t ended_last;
  uint16_t next;  // in the card's list: index of a member, plus one
};

// What a member has promised, where packets are lost (group/promises.h). Bits are entries of the
// table of peers.
struct Promise {
  uint32_t to;        // who was told "not yet"
  uint32_t sequence;  // of the operation, as on the wire
};
struct Promises {
  Promise of[kChannels];  // by the operation's slot
  uint32_t sent;          // to whom something was sent since, and not been told of
  TimeNs given_ns;        // the last one
  TimeNs look_ns;         // when it is looked next
};

struct Member {
  MemberPhase phase;
  uint16_t generation;
  uint16_t index;
  bool destroying;  // the destroy operation was accepted: nothing may follow it
  ContextId context;
  RegionId channels;
  Membership membership;
  uint64_t next_sequence;      // that the host must post
  uint64_t started;            // operations taken out of parking; all below ran or run
  uint64_t finished;           // operations completed to the host
  uint64_t recycled;           // epochs whose recycling is complete
  uint32_t dma;                // outstanding, all operations, repairs too
  uint16_t farewells;          // bit per round: the peer ahead will ask nothing any more
  uint16_t sent_blocks;        // of all its operations (group/sent_blocks.h)
  Pace pace;                   // of this member's questions
  Patience patience;           // before each
  Patience late_patience;      // before those for what seems late
  uint16_t epoch_finished[2];  // operations completed, of epochs recycled and recycled + 1
  EpochProof epoch_proof[2];
  EpochTree recycling[2];
  uint64_t recycled_told;   // epochs of which those below were told that they are recycled
  bool recycling_withheld;  // they were not told of the last one: its own data tells
  bool recycling_rests;     // all is said but that all have finished, which nobody waits for
  alignas(16) peal_wire_header recycling_pattern;  // of its headers, but for the epoch
  Inquiry recycling_inquiry;
  Promises promises;
  Timer timer;   // recycling NACKs, promises and liveness
  bool watches;  // somebody may be awaited
  uint16_t parked_head;
  uint16_t parked_count;
  uint8_t* staging;           // a buffer of the card's (group/staging.h); null: none
  uint32_t staging_used;      // bit per unit
  uint32_t staging_kept;      // those of them that only answer late questions
  uint32_t staging_held;      // those that do as long as there can be any
  uint32_t parts_used;        // bit per place for a table of parts
  bool parts_wanted;          // an operation waits for one
  p2p::RequestList receives;  // that have no message yet
  p2p::RequestList copies;    // puts to itself, the first of which is under way
  uint32_t p2p_uses;          // its requests and connections: the slot is kept for them
  uint32_t depth;             // operations under way together (operation/gone_on.h)
  uint64_t depth_epoch;       // the oldest epoch when it was last seen
  uint64_t ordered_epoch;     // before this one what seems lost may be overtaken (direct_gone_on.h)
  Remote remote;
  Unsettled unsettled;
  Operation operations[kChannels];
  // From here on nothing is read before it was written, and nothing touched before it is used.
  // Tables of parts, addresses, pairs (group/by_rank.h).
  alignas(64) uint8_t by_rank[kByRankBytes];
  Steps steps[kChannels];
  Command parked[CONFIG_PARKED_OPERATIONS];
};

// Buffers that members hold in turn.
struct StagingPool {
  uint16_t free;     // list of those given back: index plus one
  uint16_t touched;  // all behind them were never taken
  uint16_t next[CONFIG_STAGING_BUFFERS];
  uint16_t owner[CONFIG_STAGING_BUFFERS];  // of one that is not free: index of a member
  uint16_t turn;                           // whose buffer is looked at first when there is none
  uint16_t holders;                        // members with units that are held
  alignas(64) uint8_t buffers[CONFIG_STAGING_BUFFERS][CONFIG_STAGING_BYTES];
};

// Answers late NACKs of a group's last barrier, or names the dead, after the member is gone.
struct Tombstone {
  bool in_use;
  uint16_t awaited;  // bit per round: the peer ahead has not said farewell
  ClientId client;
  uint64_t destroy_sequence;
  uint32_t destroy_signature;
  TimeNs buried_ns;
  Membership membership;
};

enum class DmaOwner : uint8_t {
  kOperation,     // operation/transfer.h
  kAddresses,     // group/remote.h; piece and detail: the run and its place
  kPointToPoint,  // p2p/sending.h
  kQueue,         // queue/fetch.h; piece and detail: the queue and how many entries
};

// Whose a DMA is, and what it is for: written and read by its owner alone.
struct DmaTag {
  uint16_t member;
  DmaOwner owner;
  uint8_t slot;
  uint8_t role;  // enum class TransferRole
  uint8_t step;  // where the algorithm goes on
  uint32_t piece;
  uint32_t detail;    // the algorithm's
  uint64_t sequence;  // of the operation: its slot may serve another one by then
};

enum class DmaKind : uint8_t {
  kRead,
  kReadLent,           // into the packet, of memory that the host lends for one card (port.h)
  kReadLentToSeveral,  // and for several
  kWrite,
};

struct DmaRecord {
  bool in_use;
  DmaKind kind;
  // Stalled list: index plus one. Free list: how far behind the following record the next free one
  // lies, so that records that were never used are a list, and not touched.
  uint32_t next;
  DmaTransfer transfer;
  DmaTag tag;
};

// Of direct exchanges (operation/lead.h).
struct Lead {
  int32_t packets;  // begun, and nothing has come in return; below zero: the other way round
  int32_t begun;    // since the last timers
};

// What is left to be done at the end of the card's entry point. Usually nothing, which is one look.
struct Due {
  uint16_t unsettled;  // list of members with something left to end: index plus one
  bool messages;       // of point-to-point
  bool queues;
};

struct Card {
  Port* port;
  CardIdentity identity;
  CardTimeouts timeouts;
  Checksums checksums;
  TimeNs now;
  TimeNs behind_ns;  // how late the last timers were: what had come before had its turn first
  uint32_t packets_held;
  uint32_t own_most;        // packets held beyond which it begins no own blocks (transfer.h)
  uint32_t transfers_most;  // of own blocks of a direct exchange that are under way
  uint32_t dma_in_use;
  uint32_t dma_free;     // index of the first free record
  uint32_t dma_stalled;  // list the port would not take
  uint32_t dma_stalled_last;
  Timer retry_timer;
  TimerHeap timers;
  Pace repairs;  // of all members together
  Lead lead;
  alignas(4) Due due;
  uint16_t unsettled_last;
  uint16_t first_generation;
  uint64_t counters[PEAL_COUNTER_COUNT];
  // How many were ever used: what is behind them is zero, and was not touched.
  uint32_t members_touched;
  uint32_t tombstones_touched;
  uint32_t released_count;
  RegionId released[2 * CONFIG_CARD_MEMBERS];
  Context contexts[CONFIG_CONTEXTS];
  MemoryKey keys[CONFIG_MEMORY_KEYS];
  DmaRecord dma[CONFIG_DMA_RECORDS];
  uint16_t early_free;    // index of the first free one
  uint16_t early_most;    // so many may wait
  uint16_t at_hand_free;  // the same of what stays
  uint16_t at_hand_most;
  uint16_t sent_blocks_free;  // and of what was sent
  uint16_t sent_blocks_most;
  uint32_t sent_blocks_held;  // of all operations
  // By their owners and numbers: index of the first, plus one.
  uint16_t at_hand_lists[kAtHandLists];
  EarlyPacket early[CONFIG_EARLY_PACKETS];
  AtHand at_hand[kAtHandRecords];
  SentBlock sent_blocks[CONFIG_SENT_BLOCKS];
  Timer* timer_entries[kTimers];
  Tombstone tombstones[kTombstones];
  Member members[CONFIG_CARD_MEMBERS];
  StagingPool staging;
  p2p::State p2p;
  queue::QueuePool queues;
};

// Those that were ever used: the others are free.
template <typename Entry>
struct Touched {
  Entry* first;
  uint32_t count;
  [[nodiscard]] Entry* begin() const { return first; }
  [[nodiscard]] Entry* end() const { return first + count; }
};
inline Touched<Member> members_of(Card& card) { return {card.members, card.members_touched}; }
inline Touched<const Member> members_of(const Card& card) {
  return {card.members, card.members_touched};
}
inline Touched<Tombstone> tombstones_of(Card& card) {
  return {card.tombstones, card.tombstones_touched};
}
inline Touched<const Tombstone> tombstones_of(const Card& card) {
  return {card.tombstones, card.tombstones_touched};
}

inline void count(Card& card, peal_counter counter, uint64_t by = 1) {
  card.counters[counter] += by;
}

// What the cards of a group must share; a card of another geometry would drop its pieces.
// By `pair_rounds` the logs of exchanges in steps are cut, and with them all of their blocks.
constexpr uint32_t geometry_hash(uint32_t pair_rounds = kPairRounds) {
  // (One engine is what cards have that know of none.)
  const uint32_t words[] = {kChannels,
                            kPieceWindow,
                            kPayloadBytes,
                            CONFIG_CHANNEL_BYTES,
                            kRecyclingRule,
                            kFailureRule,
                            kAnswerRule,
                            kQuestionRule,
                            kPieceRule,
                            pair_rounds,
                            CONFIG_TRANSMIT_ENGINES};
  constexpr uint32_t kUsed = CONFIG_TRANSMIT_ENGINES == 1 ? 10 : 11;
  uint32_t hash = 2166136261u;  // FNV-1a, by words
  for (uint32_t i = 0; i < kUsed; ++i) hash = (hash ^ words[i]) * 16777619u;
  return hash;
}

// Membership and operation handed around together.
struct Scope {
  Card& card;
  Member& member;
  Operation& operation;
};

}  // namespace peal
