// SPDX-License-Identifier: BSD-2-Clause
// What a card keeps for point-to-point: requests, connections, who waits for one. Only data; what
// happens to it is in firmware/p2p/. A zeroed object is an unused one. docs/decisions/0029
#pragma once

#include <cstdint>

#include "abi/status.h"
#include "abi/wire.h"
#include "firmware/base/ranks.h"
#include "firmware/base/timer_heap.h"
#include "firmware/payload.h"
#include "firmware/port.h"
#include "peal_config.h"

namespace peal::p2p {

inline constexpr uint32_t kConnections = CONFIG_CONNECTIONS;
inline constexpr uint32_t kWindow = CONFIG_CONNECTION_WINDOW;
inline constexpr uint32_t kRequests = CONFIG_P2P_REQUESTS;
inline constexpr uint32_t kServices = kRequests / 4;  // of them for gets of other ranks
inline constexpr uint32_t kEngines = CONFIG_TRANSMIT_ENGINES;
inline constexpr uint32_t kWaiters = CONFIG_CONNECTION_WAITERS;
// Bytes of one packet's share of a put or a message: whole cache lines.
inline constexpr uint32_t kChunkBytes = CONFIG_MTU_BYTES & ~63u;
// Messages of one connection that were announced and have no receive yet; and of them with their
// bytes.
inline constexpr uint32_t kPlaces = CONFIG_CONNECTION_PLACES;
inline constexpr uint32_t kTokens = 4;
// Packets of this card's whose bytes are being read: so many stand before a collective's at most.
inline constexpr uint32_t kReadsMax = 8;
inline constexpr uint8_t kNoEntry = 0xff;
inline constexpr uint16_t kNoQueue = PEAL_P2P_NO_QUEUE;
inline constexpr Rank kEverybody = ~0u;

static_assert((kWindow & (kWindow - 1)) == 0 && kWindow <= 64, "a bit of an ACK each");
static_assert(kPlaces < 0xff);
static_assert(PEAL_P2P_BODY_BYTES + kChunkBytes <= kPayloadBytes);
static_assert(kChunkBytes > 0 && kWaiters < UINT16_MAX);

// Carried by the last packet of a put (or by an empty one: a signal): told to the receiver's
// queue when the bytes are in memory there, and all that the connection carried before them.
struct Notice {
  uint16_t queue;      // of the receiving member; kNoQueue: none
  uint16_t counter;    // of that queue: what it counts
  uint32_t steps;      // how far
  uint64_t iteration;  // the start it belongs to
};

// What has been noticed here.
struct Noticed {
  uint16_t member;   // index
  uint16_t source;   // rank
  uint16_t program;  // that tells it: its name plus one; 0: none
  Notice notice;
};

enum class Owner : uint16_t {
  kHost,
  kQueue,  // firmware/queue
  kPeer,   // another rank: a get that this card serves
};

// Whose a request is; handed back when it is over.
struct Ticket {
  Owner owner;
  uint16_t queue;  // of kQueue, as `task`: where its task is
  uint32_t task;
  uint64_t cookie;  // of kHost
};

// Where a put comes from: what all of an iteration of a program have. One of no program: all zero.
struct Origin {
  uint64_t iteration;  // of what is told
  uint16_t slot;       // the program, as a slot has it
  uint8_t engine;
  // Its puts are over as soon as their bytes are here, if they are a packet long and to another
  // rank. (If such a one is refused then: next_refused().)
  bool posted;
  bool together;  // its starts fail together
};

inline constexpr Origin kNoProgram = {};

enum class Kind : uint8_t { kFree, kPut, kSend, kReceive, kGet, kServe, kFence };

// What a request has to do next on its connection.
enum class Due : uint8_t {
  kNothing,   // it waits for others
  kAnnounce,  // say that there is a message
  kData,      // PUT or STREAM, packet by packet
  kGet,
  kReady,
  kLand,  // the message came before its receive: it lies in `packet`
  kDone,  // tell the other side how it ended; then it is over
};

// Which list it is on.
enum class Place : uint8_t { kNowhere, kWanting, kWork, kSends, kCopies, kOver };

struct Request {
  Kind kind;
  Due due;
  Place place;
  bool any_tag;
  bool announced;  // send: in this life of its connection
  bool matched;    // send: READY came; receive: its message is known
  bool owes;       // receive: its connection stays until READY or DONE is sent
  bool over;       // ends with `status` as soon as nothing refers to it
  bool posted;     // put: over when its bytes are here; whether its program's starts fail together,
  bool together;
  uint8_t engine;  // whose connection carries it; of a receive: that its message came by
  uint16_t generation;
  uint16_t next;         // of its list, or the free list: index plus one
  uint16_t next_posted;  // of the member's receives
  uint16_t member;
  uint16_t rank;
  uint16_t dma;      // under way
  uint16_t records;  // packets that are not acknowledged
  uint16_t program;  // put, send: whose it is, as a slot's
  uint16_t status;   // enum peal_status
  uint32_t index;    // and its place there
  uint32_t failed_rank;
  uint32_t key;           // own memory's, held until it is over; 0: somebody else holds it
  uint32_t remote_key;    // put, get
  uint32_t peer_request;  // send, receive, serve: the other side's
  Ticket ticket;
  HostAddress memory;
  uint64_t bytes;          // of the memory; of a receive that has its message: of that
  uint64_t at;             // data: bytes that have got a packet
  uint64_t landed;         // receive, get: bytes in memory
  uint64_t remote_offset;  // put, get
  uint64_t tag;
  uint64_t order;  // in which they were started
  Notice notice;
  Packet* packet;  // kLand: held
  TimeNs accepted_ns;
};

enum class RecordState : uint8_t {
  kFree,
  kWaiting,  // to be sent, or sent again
  kReading,  // its bytes are on their way from memory
  kSent,
  kLanded,  // acknowledged out of order
};

// A packet that is not acknowledged. Its bytes are not kept, but read again, unless it is a posted
// put that is over. A queue's signal has none: it is a PUT that its record says.
struct SendRecord {
  RecordState state;
  uint8_t type;  // enum peal_packet_type
  uint8_t times;
  bool last;         // of its request: carries the notice
  bool asked;        // for an answer at once
  bool awaited;      // somebody waits until it is acknowledged
  uint16_t request;  // index plus one; 0: it needs none
  uint16_t bytes;    // of data
  uint16_t program;  // signal, SKIP: whose, as a slot's
  uint32_t first;    // READY, DONE: the body; signal: queue and counter; posted, SKIP: descriptor
  uint32_t second;   // signal: steps; posted: do its program's starts fail together? SKIP: that
                     // above the status, as a SKIP has it
  uint32_t order;    // the connection's transmissions, this one included
  uint64_t offset;   // of data in its request; signal, SKIP: iteration
  TimeNs sent_ns;
  Packet* kept;  // posted: its payload
};

enum class SlotState : uint8_t {
  kEmpty,
  kLanding,
  kLanded,
  kRefused,  // only a SKIP can take this number
};

// A packet that came, and is not below the first that is missing or landing.
struct Slot {
  SlotState state;
  uint16_t status;   // kRefused: why
  uint16_t program;  // that put it: its name plus one; 0: none
  Notice notice;     // of a program's put the iteration in each packet
};

// A message that has no receive yet.
struct Announcement {
  uint64_t tag;
  uint64_t bytes;
  uint32_t request;  // the sender's
  uint16_t program;  // as a slot's
  uint64_t iteration;
  Packet* packet;  // held: it came with its bytes; null: they are still to be asked for
};

enum class ConnectionPhase : uint8_t {
  kFree,
  kOpening,   // OPEN is sent
  kAccepted,  // ACCEPT is sent; nothing has been heard that proves that it is wanted
  kOpen,
  kDraining,  // sends nothing new, and CLOSE when all is acknowledged
  kClosing,   // CLOSE is sent
  kLeaving,   // CLOSE came; sends nothing new, and CLOSED when all is acknowledged
};

// A list of requests: index plus one of its ends.
struct RequestList {
  uint16_t first;
  uint16_t last;
};

struct Connection {
  ConnectionPhase phase;
  bool ready;  // on the card's list of those that may send
  uint8_t backoff;
  uint8_t place_count;
  uint8_t tokens;      // places that may have bytes
  uint8_t held;        // places that do
  uint8_t data_told;   // tokens given so far, modulo 256
  uint8_t data_given;  // tokens that the other side has given so far
  uint8_t data_used;   // and how many were used
  bool answered;       // opening: the other side was told of this life, and may use it
  bool owes_answer;    // an ACK, when what came is in memory
  bool questioned;     // by an ACK, whose answer is not sent yet
  bool heard;          // anything that proves that the other side knows this life
  uint8_t engine;      // on both sides: its packets leave by this one
  uint8_t peer_entry;  // of its rank; kNoEntry: it is no peer
  uint16_t generation;
  uint32_t whose;       // member, rank and engine (connection.h)
  uint16_t next;        // of its bucket, or the free list: index plus one
  uint16_t next_ready;  // of the list of those that may send
  uint16_t member;
  uint16_t rank;
  uint16_t told;       // announcements that may have come so far, modulo 2^16
  uint16_t given;      // that the other side has given so far
  uint16_t used;       // and how many were used
  uint16_t owing;      // receives whose READY or DONE is still to be sent
  uint16_t landing;    // DMA writes under way
  uint16_t unasked;    // packets landed since the last ACK
  uint16_t sought;     // receives whose tags were asked for, in turn
  uint16_t waiting;    // send records to be sent
  uint32_t peer;       // handle there; 0: not known
  uint32_t life;       // of this card's connections, counted
  uint32_t peer_life;  // accepted: which of the asker's it is
  peal_peer_address address;
  // What the headers of all its packets have in common: of those that it sends, and of those that
  // come by it, once something has. (Nothing has: no packet's.)
  alignas(16) peal_wire_header sent;
  alignas(16) peal_wire_header heard_by;
  RequestList work;   // whatever has something to send, but for
  RequestList sends;  // those that still have to be announced
  // sending
  uint32_t base;  // first packet that is not acknowledged
  uint32_t next_number;
  uint32_t window;   // packets that may be under way now
  uint32_t credit;   // acknowledged since it grew
  uint32_t recover;  // losses before this one have shrunk it
  uint32_t orders;
  uint32_t newest;       // transmission that was acknowledged
  uint32_t asked;        // an answer was asked for with the packet before this number, or later
  uint32_t inquired;     // by an ACK, whose place among the transmissions this is; 0: no
  TimeNs round_trip_ns;  // smoothed, and how much it varies; 0: not known
  TimeNs variation_ns;
  TimeNs answer_ns;    // what follows from these: within it an answer comes
  TimeNs deadline_ns;  // by which an answer is due, unless packets have left since it was set
  TimeNs launched_ns;  // when the last packet with a number left
  // receiving
  uint32_t landed;   // packets in memory, in order
  uint32_t arrived;  // first that has not come
  uint32_t beyond;   // first behind all that have come
  // this life
  uint32_t packets;
  TimeNs opened_ns;
  TimeNs used_ns;
  Timer timer;
  SendRecord records[kWindow];
  Slot slots[kWindow];
  Announcement places[kPlaces + 1];  // one more, for a message that was sought (seeking.h)
};

// A put of which something will not come, or has not: one of the own that was posted, and that the
// other rank has refused, one that the other rank skips, or one to the own rank that has failed.
struct MissingPut {
  peal_status status;  // OK: there is none
  bool together;
  bool late;            // the start that it was of was over
  uint16_t member;      // index
  uint16_t program;     // as a slot's
  uint16_t rank;        // the other
  uint32_t connection;  // handle
  uint32_t number;
  uint32_t index;  // of its descriptor
  uint64_t iteration;
  uint16_t told[PEAL_SKIP_TOLD];  // programs that its own one tells, as slots have them; 0: none
};

// A rank that asked for a connection when there was none.
struct Waiter {
  uint8_t engine;
  uint32_t member;  // handle
  uint32_t peer;    // handle of its connection
  uint32_t life;    // and which of its card's it is
  peal_peer_address address;
};

struct State {
  bool failing;    // some member's requests must end
  bool wanted;     // somebody waits for a connection, and one may be free
  bool abandoned;  // a message is still to be thrown away
  bool copies_starve;
  bool turn;  // whose turn it is: false: of an own request, true: of another rank
  uint16_t free_connection;
  uint16_t connections_touched;
  uint16_t connections_used;
  uint16_t with_tokens;
  uint16_t ready_first;
  uint16_t ready_last;
  uint16_t free_request;
  uint16_t requests_touched;
  uint16_t requests_used;
  uint16_t services_used;
  uint16_t fences;
  uint16_t reads;  // DMA reads under way
  uint16_t waiter_first;
  uint16_t waiter_count;
  uint16_t tokens_most;
  uint16_t tokens_used;
  uint16_t notice_count;
  uint16_t kept_most;  // packets of posted puts
  uint16_t kept;
  MissingPut refused;
  MissingPut skipped;
  MissingPut uncopied;
  RequestList wanting;  // requests without a connection
  RequestList over;
  uint64_t order;
  uint32_t lives;  // of connections, that have begun
  Timer timer;
  uint16_t buckets[kConnections];
  Noticed notices[kWindow];
  Waiter waiters[kWaiters];
  Request requests[kRequests];
  Connection connections[kConnections];
};

}  // namespace peal::p2p
