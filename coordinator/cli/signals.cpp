#include "coordinator/cli/signals.h"

#include <signal.h>

#include <mutex>
#include <thread>
#include <utility>

namespace prefgrid {

struct SignalWatch::Impl {
  std::mutex mutex;
  std::function<void(int)> action;
  int pending = 0;
  std::thread thread;
  bool ending = false;

  static sigset_t watched() {
    sigset_t set;
    ::sigemptyset(&set);
    for (int signal : {SIGINT, SIGTERM, SIGUSR1}) ::sigaddset(&set, signal);
    return set;
  }

  void wait() {
    const sigset_t set = watched();
    for (;;) {
      int signal = 0;
      if (::sigwait(&set, &signal) != 0) continue;
      const std::scoped_lock lock(mutex);
      if (ending) return;
      if (signal == SIGUSR1) continue;  // ours, to end this thread
      if (action) {
        action(signal);
      } else {
        pending = signal;
      }
    }
  }
};

SignalWatch::SignalWatch() : impl_(std::make_unique<Impl>()) {
  const sigset_t set = Impl::watched();
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  impl_->thread = std::thread([impl = impl_.get()] { impl->wait(); });
}

SignalWatch::~SignalWatch() {
  {
    const std::scoped_lock lock(impl_->mutex);
    impl_->ending = true;
  }
  ::pthread_kill(impl_->thread.native_handle(), SIGUSR1);
  impl_->thread.join();
}

void SignalWatch::on_signal(std::function<void(int)> action) {
  const std::scoped_lock lock(impl_->mutex);
  impl_->action = std::move(action);
  if (const int signal = std::exchange(impl_->pending, 0); signal != 0) impl_->action(signal);
}

void SignalWatch::ignore() {
  const std::scoped_lock lock(impl_->mutex);
  impl_->action = [](int) {};
}

}  // namespace prefgrid
