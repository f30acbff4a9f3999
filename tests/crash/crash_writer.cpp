// crash_writer STORE FIRST LAST: writes the numbered batches FIRST to LAST, says each one on
// standard output once it was acknowledged, and then keeps the store open until it is killed. A
// program of its own: RocksDB does not survive fork.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "tests/coordinator/store/records.h"

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  auto store = prefgrid::Store::open(argv[1]);
  if (!store.ok()) {
    std::fprintf(stderr, "%s\n", store.error().message.c_str());
    return 1;
  }
  const std::uint64_t last = std::strtoull(argv[3], nullptr, 10);
  for (std::uint64_t number = std::strtoull(argv[2], nullptr, 10); number <= last; ++number) {
    if (number % 16 == 0) {
      const std::string large = std::to_string(number) + std::string(40'000, 'a');
      if (!(*store)->put_artifact(large).ok()) return 1;
    }
    if (!(*store)->commit(prefgrid::testing::done_batch(number)).ok()) return 1;
    std::printf("%llu\n", static_cast<unsigned long long>(number));
    std::fflush(stdout);
  }
  for (;;) ::pause();
}
