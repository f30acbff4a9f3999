// SIGINT and SIGTERM as calls in a thread of their own, so that they may lock and print.
#pragma once

#include <functional>
#include <memory>

namespace prefgrid {

// Made before any other thread: both signals are blocked from then on in all of them.
class SignalWatch {
 public:
  SignalWatch();
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  // Called for each signal from now on, also for one that has come already.
  void on_signal(std::function<void(int)> action);
  // Returns once no action runs and none will.
  void ignore();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace prefgrid
