// SPDX-License-Identifier: BSD-2-Clause
// Adaptive waiting: poll; yield, since the core may be shared with the very ranks we wait for; then
// sleep, so that a rank that waits for long costs no CPU. When: wait_habit.h.
#pragma once

#include <mutex>
#include <span>

#include "hostlib/handles.h"

namespace peal::host {

using Lock = std::unique_lock<Mutex>;

inline constexpr uint64_t kForever = ~uint64_t{0};

// Returns when the request is not pending (true) or the deadline has passed (false).
bool wait_done(peal_context& context, const peal_request& request, uint64_t deadline_ns,
               Lock& lock);
// The first that is done, or PEAL_NO_INDEX. Nulls are nobody.
size_t first_done(std::span<peal_request* const> requests);
// Returns when there is one, or none is pending (true), or the deadline has passed (false).
bool wait_first(peal_context& context, std::span<peal_request* const> requests,
                uint64_t deadline_ns, Lock& lock);
// Until at most `outstanding` of the group's operations are pending, those in its order.
void wait_outstanding(peal_context& context, const peal_group& group, uint32_t outstanding,
                      Lock& lock);
// Until none of them is pending at all.
void wait_idle(peal_context& context, const peal_group& group, Lock& lock);
// Until the submission ring has a place, or the card is gone.
void wait_place(peal_context& context, Lock& lock);
// Until the group may have an exchange of the library's own, by the own request of which it has
// one; or the card is gone.
void wait_own_turn(peal_context& context, const peal_group& group, Lock& lock);
// Tells those who wait for what only this process knows.
void wake_waiters(peal_context& context);
// Sleeps until the card or another thread has news, at most timeout_ms; takes what has completed.
// False when there was something to take at once.
bool sleep_once(peal_context& context, int timeout_ms, Lock& lock);

}  // namespace peal::host
