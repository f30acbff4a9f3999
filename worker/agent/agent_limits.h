// The agent's own bounds, next to those of common/limits.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/limits.h"

namespace prefgrid::limits {

// Finished work that the coordinator has not settled: beyond either bound no new job starts.
inline constexpr std::size_t unsettled_results = 4'096;
inline constexpr std::size_t unsettled_bytes = 64 << 20;
inline constexpr std::size_t held_leases = 65'536;  // more are handed back
inline constexpr std::int64_t resend_ms = 10'000;   // of an unsettled result
inline constexpr std::int64_t hello_retry_max_ms = 5'000;
inline constexpr std::int64_t silent_heartbeats = 2;      // then the agent says hello again
inline constexpr std::int64_t farewell_ms = 2'000;        // to hand leases back before exit,
inline constexpr std::int64_t farewell_unheard_ms = 200;  // or where nobody had answered lately

// Executors.
inline constexpr std::uint32_t start_failures = 5;  // in a row, before the agent gives up
inline constexpr std::int64_t restart_first_ms = 200;
inline constexpr std::int64_t restart_max_ms = 10'000;
inline constexpr std::int64_t executor_write_ms = 5'000;  // a full pipe for longer: it is dead

// Files.
inline constexpr std::size_t transfers_at_once = 4;    // each way
inline constexpr std::int64_t stall_first_ms = 2'000;  // without progress: ask again
inline constexpr std::int64_t stall_max_ms = 10'000;
inline constexpr std::uint64_t cache_bytes = 20ull << 30;

// A full disk.
inline constexpr std::uint64_t least_room_bytes = 16ull << 20;  // less, and no job is begun
inline constexpr std::uint64_t ample_room_bytes = 1ull << 30;  // then "no space" is the job's fault
inline constexpr std::int64_t room_first_ms = 1'000;           // between two looks
inline constexpr std::int64_t room_max_ms = 60'000;            // where it is lost again soon
inline constexpr std::int64_t room_lasts_ms = 120'000;         // found for longer: not "soon"

static_assert(least_room_bytes < ample_room_bytes && room_first_ms < room_max_ms);
static_assert(unsettled_bytes > message_bytes, "one result must always fit");
static_assert(stall_first_ms < stall_max_ms && restart_first_ms < restart_max_ms);

}  // namespace prefgrid::limits
