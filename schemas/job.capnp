@0xa594246d7ad61090;
# What a job is and what it leaves behind: shared by the protocol and the store.
# The C++ side of each struct is in common/job.h. Evolution rules: schemas/README.md.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("prefgrid::schema");

struct Value {
  # A typed tree. Maps are sorted by key; a map with a key twice is refused.
  union {
    boolean @0 :Bool;
    integer @1 :Int64;
    real @2 :Float64;
    text @3 :Text;
    list @4 :List(Value);
    map @5 :List(Field);
  }
}

struct Field {
  name @0 :Text;
  value @1 :Value;
}

struct InputRef {
  name @0 :Text;
  union {
    job @1 :Data;   # JobKey, 32 bytes
    file @2 :Data;  # SHA-256 of a file from outside, 32 bytes
  }
}

struct JobSpec {
  kind @0 :Text;
  kindVersion @1 :UInt32;
  parameters @2 :List(Field);
  inputs @3 :List(InputRef);
  hasSeed @4 :Bool;
  seed @5 :UInt64;
}

struct ArtifactRef {
  name @0 :Text;    # a relative path without ".."
  digest @1 :Data;  # SHA-256 of the content, 32 bytes
  size @2 :UInt64;  # bytes
  hasInlineData @3 :Bool;
  inlineData @4 :Data;
}

struct Metric {
  # One user's partial statistic; mean = sum / count.
  name @0 :Text;
  hasWeight @1 :Bool;
  weight @2 :Float64;
  sum @3 :Float64;
  count @4 :UInt64;
  missing @5 :UInt64;
}

struct CurvePoint {
  step @0 :UInt64;
  series @1 :Text;
  value @2 :Float64;
}

struct NumericsProfile {
  # All that decides the last bits of a number.
  device @0 :Text;
  library @1 :Text;
  blasKernel @2 :Text;
  cpuCapability @3 :Text;
  threads @4 :UInt32;
  dtype @5 :Text;
}

struct JobResult {
  metrics @0 :List(Metric);
  curve @1 :List(CurvePoint);
  artifacts @2 :List(ArtifactRef);
  profile @3 :NumericsProfile;
  durationMs @4 :UInt64;
}

enum FailureClass {
  error @0;
  outOfMemory @1;
  crash @2;
  lostWorker @3;
  timeLimit @4;
  preempted @5;
  noSpace @6;  # from an executor to its agent only: its disk is full
}

struct JobFailure {
  failureClass @0 :FailureClass;
  message @1 :Text;
  signal @2 :Int32;
  logTail @3 :Data;  # at most 64 KiB, as the job wrote it: not always UTF-8
}
