@0xc95907afeff1fdb9;
# Everything that goes over a socket: coordinator <-> agents, coordinator <-> clients, and the pipe
# between an agent and its executors. C++ side: common/messages.h. Evolution: schemas/README.md.

using Cxx = import "/capnp/c++.capnp";
$Cxx.namespace("prefgrid::schema");
using Job = import "job.capnp";

const protocolVersion :UInt32 = 1;
# Raised only for a change that an older peer would misread. Peers of unequal versions part at the
# hello, each with one clear line.

struct Message {
  # Control endpoint: ROUTER (coordinator) / DEALER (agents and clients).
  # One message = one frame = [Cap'n Proto stream framing][CRC-32C of it, 4 bytes little-endian]:
  # Cap'n Proto reads most corrupted bytes without complaint.
  version @0 :UInt32;
  union {
    # agent -> coordinator
    workerHello @1 :WorkerHello;
    heartbeat @2 :Void;           # any message counts as one
    progress @3 :Progress;
    result @4 :Result;            # sent once all its artefacts are stored
    failure @5 :Failure;
    leaseReturned @6 :LeaseId;    # handed back unfinished: pre-emption, or an unknown kind

    # coordinator -> agent
    welcome @7 :Welcome;
    refused @8 :Text;             # why; the peer prints it and exits
    leases @9 :List(Lease);
    settled @10 :LeaseId;         # the result or failure is durable, or was dropped: forget it
    cancelLease @11 :LeaseId;

    # client -> coordinator -> client
    request @12 :Request;
    reply @13 :Reply;             # several for a "watch" request, one for every other

    # agent -> coordinator
    workerWaits @17 :Text;        # instead of a heartbeat: takes no lease now (its disk is full), and why
    # agent -> coordinator, and its answer
    goodbye @18 :Void;            # the agent leaves: what it held is void, uncharged

    # defined, not sent yet: pre-emption
    checkpointWanted @14 :LeaseId;
    checkpoint @15 :Checkpoint;   # sent once its artefact is stored
    checkpointStored @16 :LeaseId;
  }
}

struct LeaseId {
  job @0 :Data;      # JobKey, 32 bytes
  attempt @1 :UInt32;
}

struct KindVersion {
  kind @0 :Text;
  version @1 :UInt32;
}

struct WorkerHello {
  name @0 :Text;            # chosen by whoever started it; unique among live workers
  host @1 :Text;
  pid @2 :UInt64;
  executors @3 :UInt32;     # jobs that it can run at once
  kinds @4 :List(KindVersion);
  profile @5 :Job.NumericsProfile;
  held @6 :List(LeaseId);   # leases that it holds from before a reconnection
  softwareVersion @7 :Text;
  waitsFor @8 :Text;        # as workerWaits; "" = takes leases
}

struct Welcome {
  softwareVersion @0 :Text;
  bulkEndpoint @1 :Text;    # where artefacts go; "" host part = the host of the control endpoint
  heartbeatMs @2 :UInt32;
  dropped @3 :List(LeaseId);  # of the held ones: these are void, stop them
}

struct ResolvedInput {
  # An input as the agent needs it: what to fetch.
  name @0 :Text;
  id @1 :Data;              # JobKey or file digest, 32 bytes: the same id is the same content
  isJob @2 :Bool;
  artifacts @3 :List(Job.ArtifactRef);  # one, unnamed, for an outside file
}

struct Lease {
  id @0 :LeaseId;
  spec @1 :Job.JobSpec;
  inputs @2 :List(ResolvedInput);
  affinity @3 :UInt64;      # equal values profit from the same executor
}

struct Progress {
  lease @0 :LeaseId;
  step @1 :UInt64;
  totalSteps @2 :UInt64;
  hasLoss @3 :Bool;
  lossNats @4 :Float64;
}

struct Result {
  lease @0 :LeaseId;
  result @1 :Job.JobResult;
  log @2 :Data;             # at most 64 KiB
}

struct Failure {
  lease @0 :LeaseId;
  failure @1 :Job.JobFailure;
}

struct Checkpoint {
  lease @0 :LeaseId;
  step @1 :UInt64;
  artifact @2 :Job.ArtifactRef;
  profile @3 :Job.NumericsProfile;
}

struct Request {
  id @0 :UInt64;            # the client's own; the reply repeats it
  verb @1 :Text;            # "submit", "status", "results", "explain", "watch", ...
  arguments @2 :List(Job.Field);
}

struct Reply {
  id @0 :UInt64;
  union {
    value @1 :Job.Value;
    error :group {
      code @2 :UInt16;      # ErrorCode of common/result.h
      message @3 :Text;
    }
  }
  last @4 :Bool = true;     # false: more replies to this request follow
}

struct BulkMessage {
  # Bulk endpoint: ROUTER (coordinator, its own thread) / DEALER. Same frame layout as Message.
  version @0 :UInt32;
  union {
    put :group {            # peer -> coordinator: one chunk of an upload
      digest @1 :Data;
      size @2 :UInt64;      # of the whole artefact
      offset @3 :UInt64;
      data @4 :Data;
    }
    putAck :group {         # coordinator -> peer: bytes below this offset have arrived;
      digest @5 :Data;     # complete only once digested, and durable
      received @6 :UInt64;
      complete @7 :Bool;
      problem @8 :Text;     # "" or why the upload is refused
    }
    get :group {            # peer -> coordinator: send chunks from offset
      digest @9 :Data;
      offset @10 :UInt64;
      credit @11 :UInt32;   # chunks
    }
    chunk :group {          # coordinator -> peer
      digest @12 :Data;
      size @13 :UInt64;
      offset @14 :UInt64;
      data @15 :Data;
      problem @16 :Text;   # "" or why there is none
    }
  }
}

struct ExecutorMessage {
  # Agent <-> executor over a socket pair: [u32 length, little-endian][frame as of Message].
  version @0 :UInt32;
  union {
    # executor -> agent
    ready :group {
      kinds @1 :List(KindVersion);
      profile @2 :Job.NumericsProfile;
      softwareVersion @3 :Text;
    }
    progress @4 :Progress;
    finished :group {
      lease @5 :LeaseId;
      result @6 :Job.JobResult;   # artefacts lie in the output folder
    }
    failed @7 :Failure;
    # agent -> executor
    run :group {
      lease @8 :LeaseId;
      spec @9 :Job.JobSpec;
      inputs @10 :List(LocalInput);
      outputDir @11 :Data;        # any bytes: paths need not be UTF-8
    }
    stop @12 :Void;
  }
}

struct LocalInput {
  name @0 :Text;
  id @1 :Data;
  path @2 :Data;            # a folder for a job's output, a file for an outside file; any bytes
  isJob @3 :Bool;
}
