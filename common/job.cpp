#include "common/job.h"

namespace prefgrid {

const char* to_string(FailureClass failure_class) {
  switch (failure_class) {
    case FailureClass::error:
      return "error";
    case FailureClass::out_of_memory:
      return "out of memory";
    case FailureClass::crash:
      return "crash";
    case FailureClass::lost_worker:
      return "lost worker";
    case FailureClass::time_limit:
      return "time limit";
    case FailureClass::preempted:
      return "pre-empted";
    case FailureClass::no_space:
      return "no space";
  }
  PREFGRID_CHECK(false, "no such failure class: " + std::to_string(int(failure_class)));
}

}  // namespace prefgrid
