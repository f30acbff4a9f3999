// Every bound of the system, in one place, with the relations between them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace prefgrid::limits {

// Files a person writes.
inline constexpr std::size_t spec_file_bytes = 1 << 20;
inline constexpr std::size_t yaml_nodes = 100'000;
inline constexpr std::size_t yaml_depth = 32;
inline constexpr std::size_t dataset_line_bytes = 4 << 20;

// Values (common/value.h) in messages, in the store and in job keys: specs plus what wraps them.
inline constexpr std::size_t value_depth = 64;

// Messages.
inline constexpr std::size_t message_bytes = 16 << 20;  // a control message
inline constexpr std::size_t list_items = 1 << 20;      // of one list in a message
inline constexpr std::size_t chunk_bytes = 256 << 10;   // of an artefact, per message
inline constexpr std::size_t chunk_credit = 16;         // chunks in flight per transfer
inline constexpr std::size_t inline_artifact_bytes = 16 << 10;
inline constexpr std::size_t result_inline_bytes = 1 << 20;   // all inline data of one result
inline constexpr std::size_t shown_artifact_bytes = 1 << 30;  // printed by a verb
inline constexpr std::size_t log_tail_bytes = 64 << 10;
inline constexpr std::size_t error_text_bytes = 8 << 10;
inline constexpr std::size_t name_bytes = 256;  // worker names, kinds, file names

// Leases and liveness, on the coordinator's monotonic clock.
inline constexpr std::int64_t heartbeat_ms = 1'000;
inline constexpr std::int64_t lease_timeout_ms = 15'000;
inline constexpr std::uint32_t attempts_per_job = 3;  // charged failures before quarantine
inline constexpr std::size_t leases_per_batch = 64;
inline constexpr std::size_t events_per_drain = 4'096;  // messages read before one sync

// Disk.
inline constexpr std::uint64_t free_bytes_to_start = 64ull << 20;

static_assert(yaml_depth < value_depth, "a spec is wrapped in a few more levels");
static_assert(inline_artifact_bytes <= result_inline_bytes);
static_assert(result_inline_bytes + log_tail_bytes + error_text_bytes < message_bytes);
static_assert(chunk_bytes < message_bytes);
static_assert(lease_timeout_ms >= 5 * heartbeat_ms, "one lost heartbeat must not cost a lease");

}  // namespace prefgrid::limits
