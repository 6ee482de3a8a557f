/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */
/*
 * The card's counters, by index and name. Whatever is refused is counted here under the reason; nothing that arrives
 * from the wire, the host or a user disappears without one of these growing. Only appended to.
 */
#ifndef PEAL_ABI_COUNTERS_H
#define PEAL_ABI_COUNTERS_H

/* X(symbol, "name", "what one count means") */
#define PEAL_COUNTERS(X)                                                                                 \
	X(SENT_DATA, "sent_data", "data packets sent for the first time")                                \
	X(SENT_SIGNAL, "sent_signal", "signals and credits sent for the first time")                     \
	X(SENT_RECYCLE, "sent_recycle", "recycling signals sent for the first time")                     \
	X(SENT_NACK, "sent_nack", "NACKs sent, relayed ones included")                                   \
	X(SENT_REPAIR, "sent_repair", "data packets and signals sent again for a NACK")                  \
	X(SENT_NOT_YET, "sent_not_yet", "alive-not-yet answers sent")                                    \
	X(SENT_VERDICT, "sent_verdict", "REFUSE and DEATH packets sent")                                 \
	X(SENT_LIVENESS, "sent_liveness", "PROBE and ALIVE packets sent")                                \
	X(FORWARDED, "forwarded", "of sent_data: packets forwarded for another origin")                  \
	X(RECEIVED, "received", "packets that passed every check")                                       \
	X(DUPLICATE, "duplicate", "packets whose bit was set already: dropped")                          \
	X(RELAYED_NACK, "relayed_nack", "NACKs passed on towards the origin")                            \
	X(DMA_READ_BYTES, "dma_read_bytes", "bytes read from host memory")                               \
	X(DMA_WRITE_BYTES, "dma_write_bytes", "bytes written to host memory")                            \
	X(DMA_OPERATIONS, "dma_operations", "DMA reads and writes started")                              \
	X(OPERATIONS_COMPLETED, "operations_completed", "operations completed with success")             \
	X(OPERATIONS_FAILED, "operations_failed", "operations completed with an error")                  \
	X(COMMANDS_REFUSED, "commands_refused", "submissions refused by a check")                        \
	X(COMMANDS_PARKED, "commands_parked", "submissions that had to wait for a channel")              \
	X(PEERS_DEAD, "peers_dead", "members suspected by this card itself")                             \
	X(GROUPS_POISONED, "groups_poisoned", "groups ended by a death, on this card")                   \
	X(TOMBSTONES_REUSED, "tombstones_reused", "tombstones given up for a new group")                 \
	X(EARLY_DATA, "early_data", "data packets that came before the host's post")                     \
	X(STAGED, "staged", "data packets gathered in staging")                                          \
	/* packets dropped, by reason */                                                                 \
	X(DROP_SHORT, "drop_short", "frame shorter than a header")                                       \
	X(DROP_ETHERTYPE, "drop_ethertype", "not a Peal frame")                                          \
	X(DROP_VERSION, "drop_version", "wire version unknown")                                          \
	X(DROP_TYPE, "drop_type", "packet type, flag, operation, algorithm or reason unknown")           \
	X(DROP_LENGTH, "drop_length", "length disagrees with the frame or the operation")                \
	X(DROP_OVERSIZED, "drop_oversized", "payload larger than the MTU")                               \
	X(DROP_CHECKSUM, "drop_checksum", "CRC32C of header or payload is wrong")                        \
	X(DROP_MEMBER, "drop_member", "no such member on this card")                                     \
	X(DROP_GENERATION, "drop_generation", "an earlier member of the same slot")                      \
	X(DROP_GROUP, "drop_group", "group id is not the member's")                                      \
	X(DROP_NOT_CONNECTED, "drop_not_connected", "member has no peers yet")                           \
	X(DROP_SENDER, "drop_sender", "sender is no peer, or may not send this")                         \
	X(DROP_STRANGER, "drop_stranger", "not the member known as that rank")                           \
	X(DROP_STALE, "drop_stale", "sequence or piece that everybody has passed")                       \
	X(DROP_FUTURE, "drop_future", "sequence ahead of what may run")                                  \
	X(DROP_PIECE, "drop_piece", "piece outside the window or the operation")                         \
	X(DROP_ORIGIN, "drop_origin", "origin out of range or own")                                      \
	X(DROP_HOP, "drop_hop", "hop, step or round impossible for this origin")                         \
	X(DROP_FRAGMENT, "drop_fragment", "fragment outside the step")                                   \
	X(DROP_SIGNATURE, "drop_signature", "signature is not that of its own fields")                   \
	X(DROP_NO_DMA, "drop_no_dma", "no DMA record free; repaired later")                              \
	X(DROP_CLOSED, "drop_closed", "group is poisoned or a tombstone")                                \
	/* back-pressure */                                                                              \
	X(NO_PACKET, "no_packet", "no packet free, or half used (own blocks); tried later")              \
	X(NO_DMA_RECORD, "no_dma_record", "DMA record pool empty; tried again later")                    \
	X(NO_MEMBER, "no_member", "member pool empty; group refused")                                    \
	X(DMA_FAULT, "dma_fault", "DMA that the host interface could not carry out")                     \
	X(HELD_BACK_NACK, "held_back_nack", "NACKs put off: asks too much, or its DMA is behind")        \
	X(HELD_BACK_REPAIR, "held_back_repair", "repairs refused: the card repairs too much")            \
	X(SENT_FAREWELL, "sent_farewell", "FAREWELL packets sent")                                       \
	X(STALLS, "stalls", "timers served so late that the card itself had stopped")                    \
	/* ranks that are no peers */                                                                    \
	X(ADDRESS_READS, "address_reads", "runs of ranks' addresses read from host memory")              \
	X(AWAITS_ADDRESS, "awaits_address", "packets kept until their sender's address came")            \
	X(DROP_NO_ADDRESS, "drop_no_address", "sender not remembered, no place to wait; repaired later") \
	X(NO_STAGING, "no_staging", "operations that went without staging: no buffer was left")          \
	/* point-to-point */                                                                             \
	X(SENT_P2P, "sent_p2p", "packets of connections that have a number, sent for the first time")    \
	X(SENT_P2P_AGAIN, "sent_p2p_again", "the same, sent again")                                      \
	X(SENT_P2P_CONTROL, "sent_p2p_control", "packets of connections without a number")               \
	X(P2P_TIMEOUTS, "p2p_timeouts", "acknowledgements that did not come in time")                    \
	X(P2P_REFUSED, "p2p_refused", "packets of connections that could not be carried out")            \
	X(P2P_UNEXPECTED, "p2p_unexpected", "messages that came before their receive")                   \
	X(CONNECTIONS_OPENED, "connections_opened", "connections taken from the pool")                   \
	X(CONNECTIONS_CLOSED, "connections_closed", "connections given back")                            \
	X(CONNECTIONS_TAKEN_AWAY, "connections_taken_away", "of those: because others waited for one")   \
	X(NO_CONNECTION, "no_connection", "connection pool empty; whoever wants one waits")              \
	X(NO_P2P_REQUEST, "no_p2p_request", "request pool empty; refused or asked for again")            \
	X(DROP_CONNECTION, "drop_connection", "of a connection that is over, or of none")                \
	X(DROP_P2P_ORDER, "drop_p2p_order", "outside the window, or to be carried out in order")         \
	X(DROP_P2P_FIELD, "drop_p2p_field", "a field of a point-to-point packet that cannot be")         \
	X(DROP_NO_CONNECTION, "drop_no_connection", "no connection and no place to wait; asked again")   \
	X(DROP_NO_P2P_REQUEST, "drop_no_p2p_request", "no record for an answer; repeated later")         \
	/* triggered queues */                                                                           \
	X(STARTS, "starts", "starts of programs accepted")                                               \
	X(DESCRIPTORS, "descriptors", "descriptors of programs carried out")                             \
	X(DESCRIPTORS_FETCHED, "descriptors_fetched", "descriptors read from host memory")               \
	X(NOTICES, "notices", "told to counters of programs")                                            \
	X(NOTICES_STALE, "notices_stale", "told too late: that iteration is over")                       \
	X(NOTICES_REFUSED, "notices_refused", "told by the wrong rank, or to no counter that there is")  \
	X(NO_QUEUE, "no_queue", "queue pool empty; program refused")                                     \
	X(NO_TASK, "no_task", "no record for what a descriptor asks for; tried again later")             \
	X(SENT_FAILURE, "sent_failure", "FAILURE and KNOWN packets sent")                                \
	X(STARTS_TOLD, "starts_told", "starts that ended because another rank's had failed")             \
	X(THROWN_AWAY, "thrown_away", "puts and messages of iterations that have failed")                \
	X(NO_FAILURE, "no_failure", "no record for a failed start; told later, or again")

enum peal_counter {
#define PEAL_COUNTER_ENUM(symbol, name, text) PEAL_COUNTER_##symbol,
	PEAL_COUNTERS(PEAL_COUNTER_ENUM)
#undef PEAL_COUNTER_ENUM
	PEAL_COUNTER_COUNT
};

#endif
