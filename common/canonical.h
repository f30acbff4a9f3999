// The canonical encoding: the bytes whose SHA-256 is a JobKey.
//
// Layout, version 1. All numbers little-endian; text = [u64 bytes][bytes].
//   job   = "prefgrid job" 0x01 | text kind | u32 kind version | map parameters
//           | u64 inputs, then each, sorted by name: text name | 'J' or 'F' | 32 bytes
//           | 'N' (no seed) or 'S' u64 seed
//   value = 'b' u8 | 'i' i64 | 'r' IEEE-754 double | 't' text
//           | 'l' u64 count, values | 'm' map
//   map   = u64 count, then each, sorted by the bytes of its key: text key | value
//
// Why so: every item carries a tag or a length, so no two different jobs share an encoding
// ("a","bc" is not "ab","c"). Integers and reals have different tags: the catalogue decides a
// field's type, never its spelling. -0.0 is encoded as 0.0, which it equals; NaN and infinity are
// refused, for they equal nothing or hide an overflow. Map order, comments, display names and paths
// are not in it. A job's input ('J') and a file ('F') differ even with equal bytes.
//
// Downsides: the encoding is not self-describing beyond its tags and there is no decoder (the
// JobSpec itself is stored where it is needed). It never changes without a new version byte, and
// a new version byte re-runs everybody's finished work: tests/vectors/job_keys.json guards it.
#pragma once

#include <string>

#include "common/job.h"
#include "common/result.h"
#include "common/value.h"

namespace prefgrid {

// Errors (invalid_input) name the field: NaN or infinite numbers, nesting over limits::value_depth.
Result<std::string> canonical_encoding(const JobSpec& spec);
// Of a value alone, e.g. to fingerprint a checked spec.
Result<std::string> canonical_encoding(const Value& value);

}  // namespace prefgrid
