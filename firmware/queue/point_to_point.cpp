// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/queue/point_to_point.h"

#include "firmware/p2p/abandoned.h"

namespace peal::queue {

constinit const Network kPointToPoint = {.reaches = p2p::is_reachable,
                                         .put = p2p::start_put,
                                         .signal = p2p::start_signal,
                                         .send = p2p::start_send,
                                         .receive = p2p::start_receive,
                                         .give_up = p2p::give_up_messages,
                                         .throw_away = p2p::throw_away_announced,
                                         .is_landing = p2p::is_landing};

}  // namespace peal::queue
